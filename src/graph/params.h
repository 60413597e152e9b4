// The parameters of a node: inputs, outputs, weights and gradients with their fields, as graphs show them.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dump/flatten.h"
#include "graph/value.h"

namespace msprobe {

struct Field {
  std::string_view key;
  Value value;
};

/// One leaf of an op after normalisation.
struct Param {
  std::string name;  // file name of its data without extension when it was saved, else node name and suffix
  ItemState state = ItemState::kInput;
  std::vector<Field> fields;  // in the order of output
  Value max, min, mean, norm, dtype, shape, requires_grad, md5;
  uint8_t given = 0;     // which of these are among the fields, a bit for each
  bool has_md5 = false;  // the dump has it; every other md5 is made up from the value
  bool is_output() const { return state == ItemState::kOutput; }
};

/// The parameters of a node, reused from node to node. They point into the JSON document they were read from.
class ParamList {
 public:
  /// Reads the entry of `node` in dump.json; an earlier parameter of the same name is replaced.
  void Read(std::string_view node, const JsonValue& op);
  /// One more, which was read elsewhere; what it points to must outlive the list.
  void Append(Param p) {
    if (count_ == params_.size()) params_.emplace_back();
    params_[count_++] = std::move(p);
  }
  void Clear() {
    count_ = 0;
    texts_.clear();
    seen_.clear();
    indexed_ = 0;
  }
  size_t size() const { return count_; }
  const Param& operator[](size_t i) const { return params_[i]; }

 private:
  Param* Slot(std::string_view name, bool output);
  size_t Known(std::string_view name, bool output);
  void Fill(std::string_view full_name, const JsonValue& leaf, Param* p);
  void FillScalar(std::string_view full_name, const JsonValue& leaf, std::string_view type, Param* p);
  void SetStats(const Value& v, Param* p);
  void Set(std::string_view key, const Value& v, Param* p);
  std::string_view Keep(std::string text);

  std::vector<Param> params_;
  size_t count_ = 0;
  std::unordered_multimap<size_t, size_t> seen_;  // hash of the name, for nodes with many parameters
  size_t indexed_ = 0;                            // parameters below are in seen_
  std::deque<std::string> texts_;
  std::vector<Item> items_;
  std::string name_;
};

}  // namespace msprobe
