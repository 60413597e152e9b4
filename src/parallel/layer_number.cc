#include "parallel/layer_number.h"

#include <charconv>
#include <vector>

#include "base/text.h"

namespace msprobe {
namespace {

bool FindNumber(std::string_view name, std::string_view parent, const std::vector<std::string_view>& words,
                LayerNumber* out) {
  bool found = false;
  for (std::string_view word : words) {
    for (size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
      const size_t begin = at + word.size();
      size_t end = begin;
      while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
      if (end == begin || end - begin > 6 || end >= name.size() || name[end] != '.') continue;
      if (StartsWith(parent, name.substr(0, end + 1))) continue;
      if (found && begin <= out->prefix.size()) continue;  // the last one is the node's own
      found = true;
      out->prefix = name.substr(0, begin);
      out->rest = name.substr(end);
      std::from_chars(name.data() + begin, name.data() + end, out->number);
    }
  }
  return found;
}

}  // namespace

bool FindLayerNumber(std::string_view name, std::string_view parent, LayerNumber* out) {
  return FindNumber(name, parent, {"layers.", "layer."}, out);
}

bool FindExpertNumber(std::string_view name, std::string_view parent, LayerNumber* out) {
  return FindNumber(name, parent, {"experts."}, out);
}

}  // namespace msprobe
