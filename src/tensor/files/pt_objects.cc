// What checkpoints hold beside tensors: objects, sets, bytes, as nodes of the machine.
#include "tensor/files/pt_machine.h"

namespace msprobe::pt {

/// Opcodes of objects and of values that files of tensors alone do not hold.
bool Machine::StepObject(uint8_t op) {
  std::vector<Id> items;
  uint64_t size = 0;
  std::string_view text;
  const auto class_of = [&](size_t count) {
    return PopMany(count, &items) &&
           (nodes_[items[0]].kind == PickleNode::kGlobal || Fail("it calls what is not a class"));
  };
  switch (op) {
    case 0x81: return class_of(2) && MakeObject(nodes_[items[0]].text, {items.begin() + 1, items.end()});
    case 0x92: return class_of(3) && MakeObject(nodes_[items[0]].text, {items.begin() + 1, items.end()});
    case 0x8f: return Make(PickleNode::kList), true;                     // EMPTY_SET
    case 0x90: return PopMany(&items) && Add(PickleNode::kList, items);  // ADDITEMS
    case 0x91:                                                           // FROZENSET
      if (!PopMany(&items)) return false;
      Make(PickleNode::kList).items = std::move(items);
      return true;
    case '0': return PopMany(1, &items);
    case '1': return PopMany(&items);
    case '2':
      if (stack_.size() <= Floor()) return Fail("a value is missing");
      return stack_.push_back(stack_.back()), true;
    case 'C': return StepText('U');  // bytes of one, four and eight bytes of length, and a bytearray
    case 'B': return StepText('X');
    case 0x8e:
    case 0x96: return StepText(0x8d);
    case 0x8b: {  // LONG4: no number of ours is as long
      uint32_t length = 0;
      if (!Take(&length)) return false;
      size = length;
      return TakeText(size, &text) && MakeInt(0);
    }
    default: return false;
  }
}

/// An object as PtObjects::kShown has it.
bool Machine::MakeObject(std::string_view name, std::vector<Id> args) {
  items_ += args.size() + 2;
  Make(PickleNode::kNone);
  const Id none = stack_.back();
  stack_.pop_back();
  PickleNode& tuple = Make(PickleNode::kTuple);
  tuple.items = std::move(args);
  const Id arguments = stack_.back();
  stack_.pop_back();
  PickleNode& made = Make(PickleNode::kOther);
  made.text = name;
  made.items = {arguments, none};
  return true;
}

}  // namespace msprobe::pt
