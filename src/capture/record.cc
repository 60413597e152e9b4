#include "capture/record.h"

#include <bitset>

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

// What a node refers to is there before the node: memory may be refused between the two.
void Record::PushText(RecordNodeType type, std::string_view s) {
  const size_t offset = text.size();
  text.append(s);
  RecordNode& node = Push(type);
  node.length = static_cast<uint32_t>(s.size());
  node.offset = offset;
}

void Record::Typed(const char* type, std::string_view value) {
  // Two nodes: the literal of the type, then the text of the value.
  Push(RecordNodeType::kTyped).literal = type;
  PushText(RecordNodeType::kString, value);
}

TensorRecord& Record::Tensor() {
  tensors.emplace_back();
  Push(RecordNodeType::kTensor).i = static_cast<int64_t>(tensors.size()) - 1;
  return tensors.back();
}

void Record::SetFile(TensorRecord* tensor, std::string_view file) {
  const size_t offset = text.size();
  text.append(file);
  tensor->file = offset;
  tensor->file_length = static_cast<uint32_t>(file.size());
}

void Record::Extra(TensorRecord* tensor, std::string_view members) {
  const size_t offset = text.size();
  text.append(members);
  tensor->extra = offset;
  tensor->extra_length = static_cast<uint32_t>(members.size());
}

void Record::Append(const Record& other, size_t from) {
  const size_t before = nodes.size(), texts = text.size(), first = tensors.size(), dim = dims.size();
  text.append(other.text);
  dims.insert(dims.end(), other.dims.begin(), other.dims.end());
  for (TensorRecord tensor : other.tensors) {
    tensor.dims += static_cast<uint32_t>(dim);
    tensor.file += texts;
    tensor.extra += texts;
    tensors.push_back(tensor);
  }
  for (size_t i = from; i < other.nodes.size(); ++i) {
    RecordNode node = other.nodes[i];
    switch (node.type) {
      case RecordNodeType::kString:
      case RecordNodeType::kJson:
      case RecordNodeType::kKey: node.offset += texts; break;
      case RecordNodeType::kTensor: node.i += static_cast<int64_t>(first); break;
      default: break;
    }
    nodes.push_back(node);
  }
  for (HeldValue value : other.held) {
    value.node += static_cast<uint32_t>(before - from);
    held.push_back(std::move(value));
  }
  has_slots |= other.has_slots;
}

// Needs no memory. Behind what was refused within a value the next one would take its place.
bool Record::IsWhole() const {
  std::bitset<512> in_object;  // by depth: values are recorded 400 levels deep at most
  size_t depth = 0;
  in_object[0] = !bare;
  bool key = false;  // the last one waits for its value
  for (size_t i = 0; i < nodes.size(); ++i) {
    const RecordNodeType type = nodes[i].type;
    if (type == RecordNodeType::kKey || type == RecordNodeType::kKeyLiteral) {
      if (key || !in_object[depth]) return false;
      key = true;
      continue;
    }
    if (type == RecordNodeType::kListEnd || type == RecordNodeType::kDictEnd) {
      if (key || depth == 0 || in_object[depth] != (type == RecordNodeType::kDictEnd)) return false;
      --depth;
      continue;
    }
    if (in_object[depth] && !key) return false;
    key = false;
    if (type == RecordNodeType::kTyped && (++i == nodes.size() || nodes[i].type != RecordNodeType::kString))
      return false;
    if (type != RecordNodeType::kListBegin && type != RecordNodeType::kDictBegin) continue;
    if (++depth == in_object.size()) return false;
    in_object[depth] = type == RecordNodeType::kDictBegin;
  }
  return !key && depth == 0;
}

}  // namespace msprobe
