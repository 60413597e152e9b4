// Attention computed once more in float64, for the scale and the window that explain what a side computed.
#pragma once

#include <cstdint>
#include <vector>

namespace msprobe {

/// What attention is given for one sequence: keys and values of all positions from 0, and some queries.
struct AttentionInput {
  int64_t heads = 0, groups = 0, size = 0;  // of queries, of keys, of a head
  std::vector<int64_t> positions;           // of the queries
  std::vector<float> queries;               // [queries, heads * size]
  std::vector<float> keys, values;          // [positions, groups * size]
  std::vector<float> outputs;               // [queries, heads * size]: what the side made of them
};

struct AttentionForm {
  double scale = 0;
  int64_t window = 0;  // keys that a query sees, itself included; 0: all before it
  bool tiled = false;  // query head h reads key head h % groups in place of h / (heads / groups)
  double error = 0;    // the largest relative error of a query
  double cap = 0;      // scores are cap * tanh(score / cap); 0: as they are
};

class AttentionFit {
 public:
  explicit AttentionFit(const AttentionInput& input);
  /// The error of a form, which is written into it.
  double Measure(AttentionForm* form) const;
  /// The usual size of a query's largest score: rounding of scores changes weights by as many units.
  double UsualScore(double scale) const;
  /// The scale that explains most, all else as in `form`.
  AttentionForm BestScale(AttentionForm form) const;
  AttentionForm BestWindow(AttentionForm form) const;

 private:
  const AttentionInput& in_;
  int64_t length_ = 0;
  std::vector<float> dots_[2];  // [query, head, key], by `tiled`
};

}  // namespace msprobe
