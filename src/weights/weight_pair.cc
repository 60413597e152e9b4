#include "weights/weight_pair.h"

namespace msprobe {

std::string_view MatchedByText(MatchedBy by) {
  switch (by) {
    case MatchedBy::kFile: return "map";
    case MatchedBy::kName: return "name";
    case MatchedBy::kRole: return "role";
    case MatchedBy::kTied: return "tied";
    case MatchedBy::kStatistics: return "values";
    case MatchedBy::kStructure: return "order";
  }
  return "";
}

}  // namespace msprobe
