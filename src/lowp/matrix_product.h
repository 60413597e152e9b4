// Sums of products of two matrices, in full and as formats of few bits leave their operands.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lowp/formats/scaled_format.h"

namespace msprobe {

/// The formats of one recipe.
struct MatrixPlan {
  std::string name;
  ScaledFormat input, weight, gradient;
  CastRules rules;
};

/// What a result loses. Sums over a sample of its rows.
struct ResultLoss {
  double error2 = 0, value2 = 0;
  double floor = 0;  // what the operands' rounding costs at least
  /// Sum over rows of (change of the row, times its gradient)^2: what each row alone changes the loss by, first order.
  double loss2 = 0;
  double share = 0;  // of the rows that were looked at
  bool seen() const { return share > 0; }
  double Error() const;
  void Add(const ResultLoss& other);
};

struct OpLoss {
  StoredCounts input, weight, gradient;
  ResultLoss result, input_gradient, weight_gradient;
};

/// a [M, K] times b [N, K], transposed; `gradient` [M, N] of the result, or empty.
struct MatrixProduct {
  DenseMatrix a, b, gradient;
  float largest_a = 0, largest_b = 0, largest_gradient = 0;  // of the tensors of which these are parts
};

/// One head: query [L, E], key [S, E], value [S, V], what is added to the scores [L, S] (may be empty).
struct AttentionHead {
  DenseMatrix query, key, value, bias, gradient;
  float largest_query = 0, largest_key = 0, largest_value = 0;
  double scale = 1;
};

/// `most`: multiplications that may be spent on one of the three results.
OpLoss LossOf(const MatrixPlan& plan, const MatrixProduct& product, int64_t most);
OpLoss LossOf(const MatrixPlan& plan, const AttentionHead& head, int64_t most);

void AddLoss(const OpLoss& part, OpLoss* sum);

}  // namespace msprobe
