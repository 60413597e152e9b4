// The stack machine of pickles, for pt_pickle.cc and pt_objects.cc: values are nodes, and nothing is called.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/message.h"
#include "tensor/files/pt_value.h"

namespace msprobe::pt {

inline constexpr size_t kMostNodes = size_t{1} << 21, kMostItems = size_t{1} << 22, kMostValues = size_t{1} << 20;
// The metadata of a checkpoint of many gigabytes has more: one node for so many bytes of it is room for any.
inline constexpr size_t kBytesPerNode = 4, kMostOfAll = size_t{1} << 26;
// Values may be shared, and a list of one shared list many times over is written out: so many for each byte.
inline constexpr size_t kValuesPerByte = 64, kFewValues = 4096;
inline constexpr int kMostDepth = 100;

using Id = uint32_t;

// A value while the pickle runs; containers name their items, because values may be shared.
struct PickleNode {
  enum Kind : uint8_t { kNone, kBool, kInt, kFloat, kText, kTensor, kList, kTuple, kDict, kOther, kGlobal, kStorage };
  Kind kind = kNone;
  DType dtype = DType::kUnknown;  // kStorage
  uint32_t first = 0, count = 0;  // its items, among those of all
  union {
    int64_t i = 0;  // kTensor: its number
    double d;
  };
  std::string_view text;    // kGlobal: "module name" of a known one, the name of others; kStorage: its bytes
  std::string_view module;  // kGlobal of others, kOther
};

/// The items of all nodes one after the other. Where a container grows it moves, with room for as much again.
class NodeItems {
 public:
  /// Valid until the next call of Set() or Append().
  std::span<const Id> of(const PickleNode& node) const { return {ids_.data() + node.first, node.count}; }
  Id& at(const PickleNode& node, size_t place) { return ids_[node.first + place]; }
  void Set(PickleNode* node, std::span<const Id> items) {
    node->first = static_cast<uint32_t>(ids_.size()), node->count = static_cast<uint32_t>(items.size());
    ids_.insert(ids_.end(), items.begin(), items.end());
  }
  void Append(PickleNode* node, std::span<const Id> items) {
    const size_t old = node->count, count = old + items.size();
    if (old == 0 || count > std::bit_ceil(old)) {
      const size_t first = ids_.size();
      ids_.resize(first + std::bit_ceil(count));
      std::copy_n(ids_.begin() + node->first, old, ids_.begin() + static_cast<int64_t>(first));
      node->first = static_cast<uint32_t>(first);
    }
    std::copy(items.begin(), items.end(), ids_.begin() + static_cast<int64_t>(node->first + old));
    node->count = static_cast<uint32_t>(count);
  }

 private:
  std::vector<Id> ids_;
};

/// What is kept under numbers, which mostly count from 0.
class Memo {
 public:
  size_t size() const { return counted_.size() + others_.size(); }
  void Put(uint32_t number, Id id) {
    if (number < counted_.size()) {
      counted_[number] = id;
    } else if (number == counted_.size()) {
      counted_.push_back(id);
      others_.erase(number);
    } else {
      others_[number] = id;
    }
  }
  const Id* Find(uint32_t number) const {
    if (number < counted_.size()) return &counted_[number];
    const auto found = others_.find(number);
    return found == others_.end() ? nullptr : &found->second;
  }

 private:
  std::vector<Id> counted_;
  std::unordered_map<uint32_t, Id> others_;
};

class Machine {
 public:
  Machine(std::string_view pickle, const PtStorages& storages, PtObjects objects)
      : rest_(pickle),
        more_(objects == PtObjects::kShown ? std::min(kMostOfAll, pickle.size() / kBytesPerNode) : 0),
        most_values_(std::max(std::min(kMostValues, kFewValues + kValuesPerByte * pickle.size()), 2 * more_)),
        shown_(objects == PtObjects::kShown),
        storages_(storages) {}

  /// False when `why` says what is wrong.
  bool Run() {
    while (!done_) {
      uint8_t op = 0;
      if (!Take(&op)) return Fail(Msg("it ends in the middle"));
      if (nodes_.size() > std::max(kMostNodes, more_) || items_ > std::max(kMostItems, 4 * more_) ||
          marks_.size() > kMostNodes)
        return Fail(Msg("it holds too many values"));
      if (!Step(op)) return false;
    }
    if (stack_.size() != 1 || !marks_.empty()) return Fail(Msg("it leaves no single value"));
    memo_ = {};
    return true;
  }
  // What Run() left, and values in it.
  Id whole() const { return stack_[0]; }
  bool Value(Id id, PtValue* out) { return ToValue(id, 0, out); }
  /// The items of the dict that an object, or a dict, has under this name.
  std::optional<std::span<const Id>> DictOf(Id id, std::string_view name) const {
    std::optional<Id> dict = id;
    if (nodes_[id].kind == PickleNode::kOther && nodes_[id].count == kPtObjectItems)
      dict = items_of_.of(nodes_[id])[kPtState];
    if (dict = nodes_[*dict].kind == PickleNode::kDict ? MemberOf(*dict, name) : std::nullopt; !dict) return {};
    if (nodes_[*dict].kind != PickleNode::kDict) return {};
    return items_of_.of(nodes_[*dict]);
  }
  const Message& why() const { return why_; }

 private:
  std::optional<Id> MemberOf(Id dict, std::string_view name) const {
    const std::span<const Id> items = items_of_.of(nodes_[dict]);
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      if (nodes_[items[i]].kind == PickleNode::kText && nodes_[items[i]].text == name) return items[i + 1];
    }
    return std::nullopt;
  }
  bool Fail(Message why) {
    if (why_.empty()) why_ = std::move(why);
    return false;
  }

  template <typename T>
  bool Take(T* out) {
    if (rest_.size() < sizeof *out) return Fail(Msg("it ends in the middle"));
    std::memcpy(out, rest_.data(), sizeof *out);
    rest_.remove_prefix(sizeof *out);
    return true;
  }
  bool TakeText(uint64_t size, std::string_view* out) {
    if (size > rest_.size()) return Fail(Msg("it ends in the middle"));
    *out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }
  bool TakeLine(std::string_view* out) {
    const size_t end = rest_.find('\n');
    if (end == std::string_view::npos) return Fail(Msg("it ends in the middle"));
    *out = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return true;
  }

  PickleNode& Make(PickleNode::Kind kind) {
    stack_.push_back(static_cast<Id>(nodes_.size()));
    PickleNode& node = nodes_.emplace_back();
    node.kind = kind;
    return node;
  }
  bool MakeInt(int64_t v) {
    if (v < 0 || v >= static_cast<int64_t>(small_.size())) return Make(PickleNode::kInt).i = v, true;
    // A node for all uses of it: sizes and offsets are most of what metadata holds.
    std::optional<Id>& known = small_[static_cast<size_t>(v)];
    if (!known) {
      known = static_cast<Id>(nodes_.size());
      return Make(PickleNode::kInt).i = v, true;
    }
    ++items_;
    return stack_.push_back(*known), true;
  }
  bool MakeText(std::string_view text) { return Make(PickleNode::kText).text = text, true; }
  PickleNode& Top() { return nodes_[stack_.back()]; }

  // Values above the last mark, or `count` of them.
  bool PopMany(std::vector<Id>* out) {
    if (marks_.empty()) return Fail(Msg("a mark is missing"));
    const size_t begin = marks_.back();
    marks_.pop_back();
    out->assign(stack_.begin() + static_cast<int64_t>(begin), stack_.end());
    stack_.resize(begin);
    items_ += out->size();
    return true;
  }
  bool PopMany(size_t count, std::vector<Id>* out) {
    if (stack_.size() < Floor() + count) return Fail(Msg("a value is missing"));
    out->assign(stack_.end() - static_cast<int64_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    items_ += count;
    return true;
  }
  // Values below the last mark cannot be taken.
  size_t Floor() const { return marks_.empty() ? 0 : marks_.back(); }

  bool Step(uint8_t op);
  bool StepNumber(uint8_t op);
  bool StepText(uint8_t op);
  bool StepMemo(uint8_t op);
  bool StepContainer(uint8_t op);
  bool StepObject(uint8_t op);
  bool MakeObject(Id named_after, std::vector<Id> args);
  bool PutInto(PickleNode::Kind kind, std::span<const Id> items);
  void MakeWithItems(PickleNode::Kind kind, std::span<const Id> items) { items_of_.Set(&Make(kind), items); }
  std::vector<Id> ItemsOf(Id id) const {
    const std::span<const Id> items = items_of_.of(nodes_[id]);
    return {items.begin(), items.end()};
  }
  bool MakeLargeInt(std::string_view digits);
  bool IsHostile(Id callee);
  bool Tuple(size_t count);
  bool Add(PickleNode::Kind kind, std::span<const Id> items);
  bool Global(std::string_view module, std::string_view name);
  bool Persistent();
  bool Reduce();
  bool Call(std::string_view function, Id function_id, std::vector<Id> args);
  bool CallForeign(Id function_id, std::vector<Id> args);
  bool Tensor(const std::vector<Id>& args, bool names_dtype);
  bool Integers(Id tuple, std::vector<int64_t>* out);
  bool ToValue(Id id, int depth, PtValue* out);

  std::string_view rest_;
  const size_t more_;  // nodes, beyond what files of tensors may have
  const size_t most_values_;
  const bool shown_;  // objects are shown as what they are made of
  const PtStorages& storages_;
  bool done_ = false;
  size_t items_ = 0, values_ = 0;
  Message why_;
  std::vector<PickleNode> nodes_;
  NodeItems items_of_;
  std::vector<PtTensor> tensors_;
  std::vector<Id> stack_;
  std::vector<size_t> marks_;
  Memo memo_;
  std::array<std::optional<Id>, 1024> small_;  // numbers
  std::optional<Id> none_;                     // in objects
  std::vector<Id> path_;                       // what ToValue() is inside of
};

}  // namespace msprobe::pt
