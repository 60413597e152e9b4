// Call stacks: compared as (code object, instruction) pairs when an op is recorded, turned into text once per distinct
// stack.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "capture/op_name.h"

namespace msprobe {

struct Frame {
  const void* code = nullptr;
  int32_t instruction = 0;
  bool operator==(const Frame&) const = default;
};

using StackLines = std::vector<std::string>;

/// One op and its stack; the lines live as long as the table.
struct StackUse {
  const StackLines* lines;
  OpName name;
};

/// `"key": [[names], [lines]]` for each distinct stack of `uses` in order of first use, as stack.json lists them;
/// *next_key counts on. Members of an object at depth 1.
void AppendStackGroups(std::span<const StackUse> uses, uint64_t* next_key, std::string* out);

/// How long the text of AppendStackGroups will be, while its uses come in parts.
class StackGroupBytes {
 public:
  uint64_t Add(std::span<const StackUse> uses);
  /// The text has been written: every stack is listed anew.
  void Restart() { seen_.clear(); }

 private:
  std::unordered_set<const StackLines*> seen_;
};

class StackTable {
 public:
  /// Id of a stack, innermost frame first. `is_new` tells the caller to keep the code objects alive and to SetText().
  uint32_t Intern(std::span<const Frame> frames, bool* is_new);
  std::span<const Frame> Frames(uint32_t id) const;
  size_t size() const { return begin_.size(); }
  /// Lines of a stack; equal texts share one number in the file.
  void SetText(uint32_t id, StackLines lines);
  bool HasText(uint32_t id) const { return text_of_[id] >= 0; }
  /// It will never have one: its uses are left out.
  void GiveUpText(uint32_t id) { text_of_[id] = kLostText; }

  void AddUse(uint32_t id, const OpName& name) { uses_.push_back({id, name}); }
  size_t uses() const { return uses_.size(); }
  void ResetUses();
  /// The uses since the last call. One without text yet waits, and those behind it.
  std::vector<StackUse> TakeUses();
  /// Forgets the uses since then.
  void DropNewUses() { uses_.resize(taken_); }
  /// stack.json of the whole step, each stack once: pieces of text in order. Only the use numbers are kept in memory
  /// for this, 24 bytes an op.
  Status WriteAll(const std::function<Status(std::string_view)>& write) const;

 private:
  static constexpr int32_t kNoText = -1, kLostText = -2;
  struct Use {
    uint32_t id = 0;
    OpName name;
  };
  std::vector<Frame> frames_;
  std::vector<std::pair<uint32_t, uint32_t>> begin_;  // first frame, count
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
  std::vector<int32_t> text_of_;
  std::deque<StackLines> texts_;  // a deque keeps addresses
  std::unordered_map<std::string, int32_t> text_index_;
  std::deque<Use> uses_;
  size_t taken_ = 0;
};

}  // namespace msprobe
