#include "compare/first_difference/same_data.h"

#include "base/page_trim.h"
#include "compare/values/item_views.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

struct Data {
  size_t calls = 0;
  double elements = 0;
};

StatusOr<Data> DataOf(const DumpFile& dump, const NameParts& call, std::string_view suffix) {
  Data out;
  ItemViews items(dump, CompareMode::kStructure);
  for (size_t i = 0; i < dump.ops().size(); ++i) {
    if (i % kStepsBetweenTrims == 0) TrimMaps();
    const NameParts name = ParseOpName(dump.ops().NameAt(i));
    if (name.base != call.base || name.direction != call.direction) continue;
    MSP_RETURN_IF_ERROR(items.Read(i));
    for (const ItemView& item : items.items()) {
      if (item.suffix != suffix || !item.tensor) continue;
      ++out.calls;
      out.elements += ElementsOfShape(item.shape);
    }
  }
  return out;
}

}  // namespace

StatusOr<bool> IsSameDataInPieces(const DumpPair& pair, std::string_view name, std::string_view suffix) {
  const NameParts call = ParseOpName(name);
  if (call.direction != OpDirection::kForward) return false;
  MSP_ASSIGN_OR_RETURN(const Data target, DataOf(*pair.target, call, suffix));
  MSP_ASSIGN_OR_RETURN(const Data golden, DataOf(*pair.golden, call, suffix));
  return target.elements > 0 && target.elements == golden.elements && target.calls != golden.calls;
}

}  // namespace msprobe
