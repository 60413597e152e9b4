// Call stacks: compared as (code object, instruction) pairs when an op is recorded, turned into text once per distinct
// stack.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/op_name.h"

namespace msprobe {

struct Frame {
  const void* code = nullptr;
  int32_t instruction = 0;
  bool operator==(const Frame&) const = default;
};

class StackTable {
 public:
  /// Id of a stack, innermost frame first. `is_new` tells the caller to keep the code objects alive.
  uint32_t Intern(std::span<const Frame> frames, bool* is_new);
  std::span<const Frame> Frames(uint32_t id) const;
  size_t size() const { return begin_.size(); }
  /// Lines of a stack; equal texts share one number in the file.
  void SetText(uint32_t id, std::vector<std::string> lines);
  bool HasText(uint32_t id) const { return id < text_of_.size() && text_of_[id] >= 0; }

  void AddUse(uint32_t id, const OpName& name) { uses_.push_back({id, name}); }
  size_t uses() const { return uses_.size(); }
  void ResetUses() { uses_.clear(); }
  /// The text of stack.json for the uses so far: {"0": [[names], [lines]], ...} in order of first use.
  std::string Json() const;

 private:
  struct Use {
    uint32_t id;
    OpName name;
  };
  std::vector<Frame> frames_;
  std::vector<std::pair<uint32_t, uint32_t>> begin_;  // first frame, count
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
  std::vector<int32_t> text_of_;
  std::vector<std::vector<std::string>> texts_;
  std::unordered_map<std::string, int32_t> text_index_;
  std::vector<Use> uses_;
};

}  // namespace msprobe
