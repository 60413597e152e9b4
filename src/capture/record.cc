#include "capture/record.h"

namespace msprobe {

void Record::Clear() {
  name = OpName();
  nodes.clear();
  tensors.clear();
  dims.clear();
  text.clear();
  queued = done = has_slots = bare = keep_unfinished = false;
}

Node& Record::Push(NodeType type) {
  Node node;
  node.type = type;
  node.i = 0;
  return nodes.emplace_back(node);
}

void Record::PushText(NodeType type, std::string_view s) {
  Node& node = Push(type);
  node.length = static_cast<uint32_t>(s.size());
  node.offset = text.size();
  text.append(s);
}

void Record::Typed(const char* type, std::string_view value) {
  // Two nodes: the literal of the type, then the text of the value.
  Push(NodeType::kTyped).literal = type;
  PushText(NodeType::kString, value);
}

TensorRecord& Record::Tensor() {
  Push(NodeType::kTensor).i = static_cast<int64_t>(tensors.size());
  return tensors.emplace_back();
}

void Record::Append(const Record& other) {
  for (Node node : other.nodes) {
    switch (node.type) {
      case NodeType::kString:
      case NodeType::kJson:
      case NodeType::kKey: node.offset += text.size(); break;
      case NodeType::kTensor: node.i += static_cast<int64_t>(tensors.size()); break;
      default: break;
    }
    nodes.push_back(node);
  }
  for (TensorRecord tensor : other.tensors) {
    tensor.dims += static_cast<uint32_t>(dims.size());
    tensors.push_back(tensor);
  }
  dims.insert(dims.end(), other.dims.begin(), other.dims.end());
  text.append(other.text);
}

}  // namespace msprobe
