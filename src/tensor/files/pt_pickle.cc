#include "tensor/files/pt_pickle.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/message.h"
#include "base/text.h"
#include "tensor/files/pt_machine.h"
#include "tensor/files/pt_names.h"

namespace msprobe {
namespace pt {

bool Machine::Step(uint8_t op) {
  std::string_view module, name;
  switch (op) {
    case 0x80: {  // PROTO
      uint8_t version = 0;
      return Take(&version) && (version <= 5 || Fail(Msg("its protocol is unknown")));
    }
    case 0x95: {  // FRAME
      uint64_t size = 0;
      return Take(&size);
    }
    case '.': return done_ = true;
    case '(': return marks_.push_back(stack_.size()), true;
    case 'N': return Make(PickleNode::kNone), true;
    case 0x88: return Make(PickleNode::kBool).i = 1, true;
    case 0x89: return Make(PickleNode::kBool), true;
    case 'c': return TakeLine(&module) && TakeLine(&name) && Global(module, name);
    case 0x93: {  // STACK_GLOBAL
      std::vector<Id> parts;
      if (!PopMany(2, &parts)) return false;
      if (nodes_[parts[0]].kind != PickleNode::kText || nodes_[parts[1]].kind != PickleNode::kText)
        return Fail(Msg("a name is not text"));
      return Global(nodes_[parts[0]].text, nodes_[parts[1]].text);
    }
    case 'Q': return Persistent();
    case 'R': return Reduce();
    case 'b': {  // BUILD: attributes of an object
      std::vector<Id> state;
      if (!PopMany(1, &state) || (stack_.size() <= Floor() && !Fail(Msg("a value is missing")))) return false;
      if (!shown_ || Top().kind != PickleNode::kOther) return true;
      // Twice would hide what the first one held.
      Id& attributes = items_of_.at(Top(), kPtState);
      if (nodes_[attributes].kind != PickleNode::kNone) return Fail(Msg("an object has attributes twice"));
      attributes = state[0];
      return true;
    }
    case 'K':
    case 'M':
    case 'J':
    case 'G':
    case 0x8a: return StepNumber(op);
    case 'X':
    case 'U':
    case 0x8c:
    case 0x8d: return StepText(op);
    case 'q':
    case 'r':
    case 0x94:
    case 'h':
    case 'j': return StepMemo(op);
    default: return StepContainer(op);
  }
}

bool Machine::StepNumber(uint8_t op) {
  if (op == 'K') {
    uint8_t v = 0;
    return Take(&v) && MakeInt(v);
  }
  if (op == 'M') {
    uint16_t v = 0;
    return Take(&v) && MakeInt(v);
  }
  if (op == 'J') {
    int32_t v = 0;
    return Take(&v) && MakeInt(v);
  }
  if (op == 'G') {
    uint64_t v = 0;
    if (!Take(&v)) return false;
    v = __builtin_bswap64(v);
    std::memcpy(&Make(PickleNode::kFloat).d, &v, sizeof v);
    return true;
  }
  uint8_t size = 0;  // LONG1
  std::string_view digits;
  if (!Take(&size) || !TakeText(size, &digits)) return false;
  if (size > 8) return shown_ ? MakeLargeInt(digits) : Fail(Msg("a number is too large"));
  uint64_t v = size > 0 && digits.back() < 0 ? ~uint64_t{0} : 0;
  std::memcpy(&v, digits.data(), size);
  return MakeInt(static_cast<int64_t>(v));
}

bool Machine::StepText(uint8_t op) {
  uint64_t size = 0;
  if (op == 'X') {
    uint32_t v = 0;
    if (!Take(&v)) return false;
    size = v;
  } else if (op == 0x8d) {
    if (!Take(&size)) return false;
  } else {
    uint8_t v = 0;
    if (!Take(&v)) return false;
    size = v;
  }
  std::string_view text;
  return TakeText(size, &text) && MakeText(text);
}

bool Machine::StepMemo(uint8_t op) {
  uint32_t number = static_cast<uint32_t>(memo_.size());
  if (op == 'q' || op == 'h') {
    uint8_t v = 0;
    if (!Take(&v)) return false;
    number = v;
  } else if (op != 0x94 && !Take(&number)) {
    return false;
  }
  if (op == 'h' || op == 'j') {
    const Id* found = memo_.Find(number);
    if (!found) return Fail(Msg("a value is missing"));
    if (++items_ > std::max(kMostItems, 4 * more_)) return Fail(Msg("it holds too many values"));
    return stack_.push_back(*found), true;
  }
  if (stack_.size() <= Floor()) return Fail(Msg("a value is missing"));
  if (memo_.size() > std::max(kMostNodes, more_)) return Fail(Msg("it holds too many values"));
  memo_.Put(number, stack_.back());
  return true;
}

bool Machine::Tuple(size_t count) {
  std::vector<Id> items;
  if (!PopMany(count, &items)) return false;
  MakeWithItems(PickleNode::kTuple, items);
  return true;
}

// Items behind those of the container that is on the stack now.
bool Machine::Add(PickleNode::Kind kind, std::span<const Id> items) {
  if (stack_.size() <= Floor()) return Fail(Msg("a value is missing"));
  if (kind == PickleNode::kDict && items.size() % 2 != 0) return Fail(Msg("a key has no value"));
  if (shown_ && Top().kind == PickleNode::kOther) return PutInto(kind, items);
  PickleNode& container = Top();
  if (container.kind != kind) return Fail(Msg("a container is of a different kind"));
  items_of_.Append(&container, items);
  return true;
}

bool Machine::StepContainer(uint8_t op) {
  std::vector<Id> items;
  switch (op) {
    case ')': return Make(PickleNode::kTuple), true;
    case ']': return Make(PickleNode::kList), true;
    case '}': return Make(PickleNode::kDict), true;
    case 0x85: return Tuple(1);
    case 0x86: return Tuple(2);
    case 0x87: return Tuple(3);
    case 't':
      if (!PopMany(&items)) return false;
      MakeWithItems(PickleNode::kTuple, items);
      return true;
    case 'a': return PopMany(1, &items) && Add(PickleNode::kList, items);
    case 's': return PopMany(2, &items) && Add(PickleNode::kDict, items);
    case 'e': return PopMany(&items) && Add(PickleNode::kList, items);
    case 'u': return PopMany(&items) && Add(PickleNode::kDict, items);
    default: {
      if (shown_ && StepObject(op)) return true;
      constexpr std::string_view kHex = "0123456789abcdef";
      return Fail(Msg("opcode 0x{}{} is not allowed", kHex[op >> 4], kHex[op & 15]));
    }
  }
}

bool Machine::Global(std::string_view module, std::string_view name) {
  const std::string full = std::string(module).append(" ").append(name);
  // The text lives in the tables, or is that of a dtype and is kept as one.
  PickleNode node;
  node.kind = PickleNode::kGlobal;
  node.text = KnownPtName(full);
  node.dtype = PtDType(full);
  if (node.text.empty() && shown_ && node.dtype == DType::kUnknown) node.text = name, node.module = module;
  if (node.text.empty() && node.dtype == DType::kUnknown) {
    return Fail(Msg("it names {}.{}, which is not read from files", OneLine(module.substr(0, 100)),
                    OneLine(name.substr(0, 100))));
  }
  stack_.push_back(static_cast<Id>(nodes_.size()));
  nodes_.push_back(node);
  return true;
}

// ("storage", class, key, location, number of elements)
bool Machine::Persistent() {
  std::vector<Id> id;
  if (!PopMany(1, &id)) return false;
  const std::span<const Id> parts = items_of_.of(nodes_[id[0]]);
  if (nodes_[id[0]].kind != PickleNode::kTuple || parts.size() != 5)
    return Fail(Msg("a storage is described in a different way"));
  const PickleNode &type = nodes_[parts[1]], &key = nodes_[parts[2]];
  const PtStorage* storage = type.kind == PickleNode::kGlobal ? FindPtStorage(type.text) : nullptr;
  if (storage == nullptr || key.kind != PickleNode::kText)
    return Fail(Msg("a storage is described in a different way"));
  const std::string_view* bytes = storages_(key.text);
  if (bytes == nullptr) return Fail(Msg("the member of a storage is missing"));
  const DType dtype = storage->dtype;
  PickleNode& made = Make(PickleNode::kStorage);
  made.dtype = dtype;
  made.text = *bytes;
  return true;
}

bool Machine::Reduce() {
  std::vector<Id> parts;
  if (!PopMany(2, &parts)) return false;
  if (nodes_[parts[1]].kind != PickleNode::kTuple) return Fail(Msg("arguments are not a tuple"));
  if (IsHostile(parts[0])) return false;
  return Call(nodes_[parts[0]].text, parts[0], ItemsOf(parts[1]));
}

bool Machine::Call(std::string_view function, Id function_id, std::vector<Id> args) {
  if (shown_ && (nodes_[function_id].kind == PickleNode::kOther || !nodes_[function_id].module.empty()))
    return CallForeign(function_id, std::move(args));
  if (nodes_[function_id].kind != PickleNode::kGlobal) return Fail(Msg("it calls what is not a function"));
  if (function == "collections OrderedDict" && args.empty()) return Make(PickleNode::kDict), true;
  if (function == "torch Size" && args.size() == 1) return stack_.push_back(args[0]), true;
  if (function.starts_with("torch._utils _rebuild_tensor")) return Tensor(args, function.ends_with("_v3"));
  // As a tensor, with the layout it had on the device behind the rest: what is stored has the plain one.
  if (function == "torch_npu.utils.storage _rebuild_npu_tensor") {
    if (!Tensor(args, false)) return false;
    tensors_.back().plain = false;
    return true;
  }
  if (function == "torch_npu.npu._format Format" && args.size() == 1) return stack_.push_back(args[0]), true;
  // (tensor, dtype, device, requires_grad)
  if (function == "torch._utils _rebuild_device_tensor_from_cpu_tensor" && args.size() == 4) {
    if (nodes_[args[0]].kind != PickleNode::kTensor) return Fail(Msg("a tensor is described in a different way"));
    PtTensor& tensor = tensors_[static_cast<size_t>(nodes_[args[0]].i)];
    tensor.requires_grad = nodes_[args[3]].i != 0, tensor.plain = false;
    return stack_.push_back(args[0]), true;
  }
  if (function.starts_with("torch._utils _rebuild_parameter") && args.size() >= 2) {
    if (shown_ && nodes_[args[0]].kind == PickleNode::kOther) return MakeObject(function_id, std::move(args));
    if (nodes_[args[0]].kind != PickleNode::kTensor) return Fail(Msg("a parameter is not a tensor"));
    tensors_[static_cast<size_t>(nodes_[args[0]].i)].requires_grad = nodes_[args[1]].i != 0;
    return stack_.push_back(args[0]), true;
  }
  // (function, type, arguments, state): tensors with attributes
  if (function == "torch._tensor _rebuild_from_type_v2" && args.size() == 4) {
    const PickleNode &inner = nodes_[args[0]], &inner_args = nodes_[args[2]];
    if (inner.kind != PickleNode::kGlobal || inner.text == function || inner_args.kind != PickleNode::kTuple) {
      return Fail(Msg("a tensor is described in a different way"));
    }
    if (IsHostile(args[0]) || !Call(inner.text, args[0], ItemsOf(args[2]))) return false;
    if (Top().kind == PickleNode::kTensor) {
      tensors_[static_cast<size_t>(Top().i)].plain = false;
    } else if (shown_) {  // of a class of tensors whose parts may be among its attributes
      const Id made = stack_.back();
      stack_.pop_back();
      return MakeObject(args[1], {made, args[3]});
    }
    return true;
  }
  if (shown_) return MakeObject(function_id, std::move(args));
  if (!IsOpaquePtFunction(function)) return Fail(Msg("it calls {} differently from torch.save()", function));
  items_ += args.size();
  MakeWithItems(PickleNode::kOther, args);
  Top().text = function.substr(function.find(' ') + 1);
  return true;
}

/// What is not known is not called: an object that is named after it.
bool Machine::CallForeign(Id function_id, std::vector<Id> args) {
  const PickleNode& function = nodes_[function_id];
  if (function.kind == PickleNode::kOther) {  // a partial, a bound method
    args.insert(args.begin(), function_id);
    return MakeObject(function_id, std::move(args));
  }
  if (function.module == "collections" && function.text == "defaultdict") return Make(PickleNode::kDict), true;
  const bool copyreg = function.module == "copyreg" || function.module == "copy_reg";
  if (copyreg && function.text == "_reconstructor" && args.size() == 3) {
    if (IsHostile(args[0])) return false;
    return MakeObject(args[0], {args[2]});
  }
  return MakeObject(function_id, std::move(args));
}

bool Machine::Integers(Id tuple, std::vector<int64_t>* out) {
  const PickleNode& node = nodes_[tuple];
  if (node.kind != PickleNode::kTuple || node.count > kMaxDims) return Fail(Msg("a shape is not a tuple of numbers"));
  for (Id id : items_of_.of(node)) {
    if (nodes_[id].kind != PickleNode::kInt || nodes_[id].i < 0) return Fail(Msg("a shape is not a tuple of numbers"));
    out->push_back(nodes_[id].i);
  }
  return true;
}

// (storage, offset, shape, strides, requires_grad, hooks[, dtype])
bool Machine::Tensor(const std::vector<Id>& args, bool names_dtype) {
  if (args.size() < (names_dtype ? 7 : 4)) return Fail(Msg("a tensor is described in a different way"));
  const PickleNode &storage = nodes_[args[0]], &offset = nodes_[args[1]];
  if (storage.kind != PickleNode::kStorage || offset.kind != PickleNode::kInt || offset.i < 0) {
    return Fail(Msg("a tensor is described in a different way"));
  }
  PtTensor tensor;
  tensor.dtype = names_dtype ? nodes_[args[6]].dtype : storage.dtype;
  const size_t element = ElementSize(tensor.dtype);
  if (element == 0) return Fail(Msg("a tensor has no known dtype"));
  if (!Integers(args[2], &tensor.shape) || !Integers(args[3], &tensor.strides)) return false;
  if (tensor.shape.size() != tensor.strides.size()) return Fail(Msg("shape and strides do not fit together"));
  // The offset and each stride count elements.
  int64_t last = offset.i, count = 1;
  bool empty = false, outside = false;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    int64_t reach = 0;
    empty |= tensor.shape[d] == 0;
    outside |= __builtin_mul_overflow(tensor.shape[d] - 1, tensor.strides[d], &reach) ||
               __builtin_add_overflow(last, reach, &last) || __builtin_mul_overflow(count, tensor.shape[d], &count);
  }
  const uint64_t elements = storage.text.size() / element;
  if (!empty && (outside || static_cast<uint64_t>(last) >= elements))
    return Fail(Msg("a tensor reaches out of its storage"));
  if (empty &&
      std::any_of(tensor.shape.begin(), tensor.shape.end(), [](int64_t n) { return n > (int64_t{1} << 40); })) {
    return Fail(Msg("a shape is too large"));
  }
  tensor.data = empty ? nullptr : storage.text.data() + static_cast<uint64_t>(offset.i) * element;
  tensor.requires_grad = args.size() > 4 && nodes_[args[4]].i != 0;
  tensor.plain = !names_dtype && args.size() == 6;  // a seventh argument has the bits
  Make(PickleNode::kTensor).i = static_cast<int64_t>(tensors_.size());
  tensors_.push_back(std::move(tensor));
  return true;
}

bool Machine::ToValue(Id id, int depth, PtValue* out) {
  if (++values_ > most_values_ || (depth > kMostDepth && !shown_))
    return Fail(Msg("it is nested too deeply or too large"));
  const PickleNode& node = nodes_[id];
  if (depth > kMostDepth) return out->kind = PtValue::Kind::kUnread, true;
  // An object may be its own attribute; tensors are not found that way.
  if (shown_ && std::find(path_.begin(), path_.end(), id) != path_.end()) return true;
  switch (node.kind) {
    case PickleNode::kGlobal:
      out->kind = PtValue::Kind::kText;
      out->text = node.dtype != DType::kUnknown ? DTypeName(node.dtype) : node.text;
      out->module = node.module;
      return true;
    case PickleNode::kStorage:
      out->kind = PtValue::Kind::kUnread;
      return shown_ || Fail(Msg("it holds a storage without a tensor"));
    default: out->kind = static_cast<PtValue::Kind>(node.kind);
  }
  out->i = node.i;  // or d, which lies there as well
  out->text = node.text;
  out->module = node.module;
  if (node.kind == PickleNode::kTensor) out->tensor = std::make_unique<PtTensor>(tensors_[static_cast<size_t>(node.i)]);
  const std::span<const Id> items = items_of_.of(node);
  if (items.size() > most_values_ - values_) return Fail(Msg("it is nested too deeply or too large"));
  out->items = PtItems(node.count);
  path_.push_back(id);
  for (size_t i = 0; i < items.size(); ++i) {
    if (!ToValue(items[i], depth + 1, &out->items[i])) return false;
  }
  path_.pop_back();
  return true;
}

}  // namespace pt

namespace {

Status Unreadable(const std::string& path, const Message& why) {
  return BadInput(Msg("{} cannot be read: {} (data.pkl); save tensors with torch.save()", path, why));
}

}  // namespace

StatusOr<PtValue> ReadPtPickle(std::string_view pickle, const PtStorages& storages, const std::string& path,
                               PtObjects objects) {
  pt::Machine machine(pickle, storages, objects);
  PtValue value;
  if (machine.Run() && machine.Value(machine.whole(), &value)) return value;
  return Unreadable(path, machine.why());
}

PtPairs::PtPairs(std::unique_ptr<pt::Machine> machine, std::string path)
    : machine_(std::move(machine)), path_(std::move(path)) {}
PtPairs::PtPairs(PtPairs&&) noexcept = default;
PtPairs::~PtPairs() = default;

StatusOr<PtPairs> PtPairs::Read(std::string_view pickle, const std::string& path) {
  static const PtStorages kNone = [](std::string_view) -> const std::string_view* { return nullptr; };
  auto machine = std::make_unique<pt::Machine>(pickle, kNone, PtObjects::kShown);
  if (!machine->Run()) return Unreadable(path, machine->why());
  return PtPairs(std::move(machine), path);
}

StatusOr<bool> PtPairs::ForEach(std::string_view name, const Take& take) {
  const auto items = machine_->DictOf(machine_->whole(), name);
  if (!items) return false;
  for (size_t i = 0; i + 1 < items->size(); i += 2) {
    PtValue key, value;
    if (!machine_->Value((*items)[i], &key) || !machine_->Value((*items)[i + 1], &value))
      return Unreadable(path_, machine_->why());
    MSP_RETURN_IF_ERROR(take(key, value));
  }
  return true;
}

}  // namespace msprobe
