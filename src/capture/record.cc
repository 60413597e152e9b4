#include "capture/record.h"

namespace msprobe {

void Record::Clear() {
  name = OpName();
  nodes.clear();
  tensors.clear();
  dims.clear();
  text.clear();
  queued = done = has_slots = bare = keep_unfinished = copy_held = false;
  save = SaveMode::kNone;
  held.clear();
  path.Reset();
  stack = -1;
}

RecordNode& Record::Push(RecordNodeType type) {
  RecordNode node;
  node.type = type;
  node.i = 0;
  return nodes.emplace_back(node);
}

void Record::PushText(RecordNodeType type, std::string_view s) {
  RecordNode& node = Push(type);
  node.length = static_cast<uint32_t>(s.size());
  node.offset = text.size();
  text.append(s);
}

void Record::Typed(const char* type, std::string_view value) {
  // Two nodes: the literal of the type, then the text of the value.
  Push(RecordNodeType::kTyped).literal = type;
  PushText(RecordNodeType::kString, value);
}

TensorRecord& Record::Tensor() {
  Push(RecordNodeType::kTensor).i = static_cast<int64_t>(tensors.size());
  return tensors.emplace_back();
}

void Record::SetFile(TensorRecord* tensor, std::string_view file) {
  tensor->file = text.size();
  tensor->file_length = static_cast<uint32_t>(file.size());
  text.append(file);
}

void Record::Extra(TensorRecord* tensor, std::string_view members) {
  tensor->extra = text.size();
  tensor->extra_length = static_cast<uint32_t>(members.size());
  text.append(members);
}

void Record::Append(const Record& other) {
  has_slots |= other.has_slots;
  for (HeldValue value : other.held) {
    value.node += static_cast<uint32_t>(nodes.size());
    held.push_back(std::move(value));
  }
  for (RecordNode node : other.nodes) {
    switch (node.type) {
      case RecordNodeType::kString:
      case RecordNodeType::kJson:
      case RecordNodeType::kKey: node.offset += text.size(); break;
      case RecordNodeType::kTensor: node.i += static_cast<int64_t>(tensors.size()); break;
      default: break;
    }
    nodes.push_back(node);
  }
  for (TensorRecord tensor : other.tensors) {
    tensor.dims += static_cast<uint32_t>(dims.size());
    tensor.file += text.size();
    tensor.extra += text.size();
    tensors.push_back(tensor);
  }
  dims.insert(dims.end(), other.dims.begin(), other.dims.end());
  text.append(other.text);
}

}  // namespace msprobe
