#include "capture/record_path.h"

#include <string_view>

namespace msprobe {
namespace {

std::string_view Section(std::string_view key) {
  if (key == "input_args") return "input";
  if (key == "input_kwargs") return "kwargs";
  return key;
}

}  // namespace

void RecordPath::Take(const RecordNodes& record, size_t number) {
  const RecordNode& node = record.nodes[number];
  switch (node.type) {
    case RecordNodeType::kKey:
      levels_.back().literal = false;
      levels_.back().key = node.offset;
      levels_.back().length = node.length;
      return;
    case RecordNodeType::kKeyLiteral:
      levels_.back().literal = true;
      levels_.back().text = node.literal;
      return;
    case RecordNodeType::kListBegin:
    case RecordNodeType::kDictBegin: levels_.push_back({node.type == RecordNodeType::kListBegin}); return;
    case RecordNodeType::kListEnd:
    case RecordNodeType::kDictEnd:
      if (levels_.size() > 1) levels_.pop_back();
      break;
    case RecordNodeType::kTyped: return;  // its text follows
    default: break;
  }
  ++levels_.back().index;
}

std::string RecordPath::NameAt(const RecordNodes& record, size_t node) {
  if (node < at_ || levels_.empty()) {
    at_ = 0;
    levels_.assign(1, Level());
  }
  for (; at_ < node && at_ < record.nodes.size(); ++at_) Take(record, at_);
  std::string name = record.name.str();
  for (size_t i = 0; i < levels_.size(); ++i) {
    const Level& level = levels_[i];
    if (i == 0 && record.bare) continue;
    // The gradient of a parameter is a list of one, and is named after the parameter alone.
    if (i > 0 && record.name.form == NameForm::kParamGrad && level.list) continue;
    name += '.';
    if (level.list) {
      name += std::to_string(level.index);
    } else if (level.literal) {
      name += i == 0 ? Section(level.text) : std::string_view(level.text);
    } else {
      name += std::string_view(record.text).substr(level.key, level.length);
    }
  }
  return name;
}

}  // namespace msprobe
