// What checkpoints hold beside tensors: objects, sets, bytes, as nodes of the machine.
#include <array>

#include "base/message.h"
#include "base/text.h"
#include "tensor/files/pt_machine.h"
#include "tensor/files/pt_names.h"

namespace msprobe::pt {

/// Opcodes of objects and of values that files of tensors alone do not hold.
bool Machine::StepObject(uint8_t op) {
  std::vector<Id> items;
  std::string_view text;
  const auto make = [&](size_t count) {
    if (!PopMany(count, &items) || IsHostile(items[0])) return false;
    if (nodes_[items[0]].kind != PickleNode::kGlobal && nodes_[items[0]].kind != PickleNode::kOther)
      return Fail(Msg("it calls what is not a class"));
    return MakeObject(items[0], {items.begin() + 1, items.end()});
  };
  switch (op) {
    case 0x81: return make(2);                                           // NEWOBJ
    case 0x92: return make(3);                                           // NEWOBJ_EX
    case 0x8f: return Make(PickleNode::kList), true;                     // EMPTY_SET
    case 0x90: return PopMany(&items) && Add(PickleNode::kList, items);  // ADDITEMS
    case 0x91:                                                           // FROZENSET
      if (!PopMany(&items)) return false;
      MakeWithItems(PickleNode::kList, items);
      return true;
    case '0': return PopMany(1, &items);
    case '1': return PopMany(&items);
    case '2':
      if (stack_.size() <= Floor()) return Fail(Msg("a value is missing"));
      return stack_.push_back(stack_.back()), true;
    case 'C': return StepText('U');  // bytes of one, four and eight bytes of length, and a bytearray
    case 'B': return StepText('X');
    case 0x8e:
    case 0x96: return StepText(0x8d);
    case 0x8b: {  // LONG4
      uint32_t length = 0;
      return Take(&length) && TakeText(length, &text) && MakeLargeInt(text);
    }
    default: return false;
  }
}

/// An object as PtObjects::kShown has it, with the name of a function or class, or of another object.
bool Machine::MakeObject(Id named_after, std::vector<Id> args) {
  items_ += args.size() + kPtObjectItems;
  std::string_view text = nodes_[named_after].text, module = nodes_[named_after].module;
  // Of a known one, both stand in one text.
  if (const size_t space = text.find(' '); module.empty() && space != std::string_view::npos)
    module = text.substr(0, space), text = text.substr(space + 1);
  if (!none_) {
    none_ = static_cast<Id>(nodes_.size());
    nodes_.emplace_back();
  }
  const Id arguments = static_cast<Id>(nodes_.size());
  PickleNode tuple, made;
  tuple.kind = PickleNode::kTuple;
  items_of_.Set(&tuple, args);
  nodes_.push_back(tuple);
  made.kind = PickleNode::kOther;
  made.text = text;
  made.module = module;
  items_of_.Set(&made, std::array{arguments, *none_, *none_, *none_});
  stack_.push_back(static_cast<Id>(nodes_.size()));
  nodes_.push_back(made);
  return true;
}

/// Into the object that is on the stack now.
bool Machine::PutInto(PickleNode::Kind kind, std::span<const Id> items) {
  const size_t place = kind == PickleNode::kDict ? kPtDict : kPtList;
  Id& held = items_of_.at(Top(), place);
  if (nodes_[held].kind == PickleNode::kNone) {
    held = static_cast<Id>(nodes_.size());
    nodes_.emplace_back().kind = kind;
  }
  items_of_.Append(&nodes_[held], items);
  return true;
}

/// A number of more than 64 bits, as an object made of parts of it: no size is as large, but two can be told apart.
bool Machine::MakeLargeInt(std::string_view digits) {
  std::vector<Id> parts;
  for (size_t at = 0; at < digits.size(); at += sizeof(int64_t)) {
    PickleNode part;
    part.kind = PickleNode::kInt;
    std::memcpy(&part.i, digits.data() + at, std::min(sizeof part.i, digits.size() - at));
    parts.push_back(static_cast<Id>(nodes_.size()));
    nodes_.push_back(part);
  }
  PickleNode type;
  type.kind = PickleNode::kGlobal;
  type.module = "builtins";
  type.text = "int";
  nodes_.push_back(type);
  return MakeObject(static_cast<Id>(nodes_.size()) - 1, std::move(parts));
}

/// Says so where a call of `callee` would run something. What is only named, or made by a class, is shown.
bool Machine::IsHostile(Id callee) {
  const auto hostile = [&](Id id) {
    const PickleNode& node = nodes_[id];
    if (node.kind != PickleNode::kGlobal || !IsHostilePtCall(node.module, node.text)) return false;
    Fail(Msg("it names {}.{}, which is not read from files", OneLine(node.module.substr(0, 100)),
             OneLine(node.text.substr(0, 100))));
    return true;
  };
  if (!shown_ || nodes_[callee].kind != PickleNode::kOther) return shown_ && hostile(callee);
  const std::span<const Id> made_of = items_of_.of(nodes_[callee]);
  const std::span<const Id> args = items_of_.of(nodes_[made_of[kPtArguments]]);  // a partial of it
  return std::any_of(args.begin(), args.end(), hostile);
}

}  // namespace msprobe::pt
