#include "lowp/matrix_product.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lowp/tensor_rows.h"

namespace msprobe {
namespace {

constexpr int kLanes = 16;  // partial sums side by side, so that the loop becomes vectors

double Dot(const float* a, const float* b, int64_t n) {
  std::array<float, kLanes> sums{};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) sums[static_cast<size_t>(l)] += a[i + l] * b[i + l];
  }
  double sum = 0;
  for (; i < n; ++i) sum += double{a[i]} * b[i];
  for (const float s : sums) sum += double{s};
  return sum;
}

/// Compares a result row by row.
class ResultWatch {
 public:
  ResultWatch(int64_t rows, int64_t sampled, double floor) {
    loss_.floor = floor;
    loss_.share = rows > 0 ? static_cast<double>(sampled) / static_cast<double>(rows) : 0;
  }
  void Element(double full, double stored, double gradient) {
    const double error = stored - full;
    loss_.error2 += error * error, loss_.value2 += full * full;
    row_ += error * gradient;
  }
  void EndRow() {
    loss_.loss2 += row_ * row_;
    row_ = 0;
  }
  const ResultLoss& loss() const { return loss_; }

 private:
  ResultLoss loss_;
  double row_ = 0;
};

double FloorOf(const ScaledFormat& a, const ScaledFormat& b) { return std::hypot(a.Floor(), b.Floor()); }

/// Rows of a times b, transposed; with `gradient` also what they change the loss by.
ResultLoss Multiply(const DenseMatrix& a, const DenseMatrix& b, const DenseMatrix& stored_a,
                    const DenseMatrix& stored_b, const DenseMatrix& gradient, double floor, int64_t most) {
  const int64_t each = std::max<int64_t>(a.cols * b.rows, 1);
  const std::vector<int64_t> rows = SampleOf(a.rows, most / each);
  ResultWatch watch(a.rows, static_cast<int64_t>(rows.size()), floor);
  for (const int64_t r : rows) {
    for (int64_t n = 0; n < b.rows; ++n) {
      const double g = gradient.rows > 0 ? gradient.Row(r)[n] : 0;
      watch.Element(Dot(a.Row(r), b.Row(n), a.cols), Dot(stored_a.Row(r), stored_b.Row(n), a.cols), g);
    }
    watch.EndRow();
  }
  return watch.loss();
}

/// softmax(q k' * scale + bias) of one row, times the values.
void AttendRow(const float* query, const AttentionHead& head, const DenseMatrix& key, const DenseMatrix& value,
               const float* bias, std::vector<double>* weights, std::vector<double>* out) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t s = 0; s < key.rows; ++s) {
    const double score = Dot(query, key.Row(s), key.cols) * head.scale + (bias != nullptr ? double{bias[s]} : 0);
    (*weights)[static_cast<size_t>(s)] = score;
    largest = std::max(largest, score);
  }
  double sum = 0;
  for (double& w : *weights) w = std::isfinite(largest) ? std::exp(w - largest) : 0, sum += w;
  std::fill(out->begin(), out->end(), 0);
  if (sum == 0) return;
  for (int64_t s = 0; s < value.rows; ++s) {
    const double w = (*weights)[static_cast<size_t>(s)] / sum;
    if (w == 0) continue;
    for (int64_t v = 0; v < value.cols; ++v) (*out)[static_cast<size_t>(v)] += w * double{value.Row(s)[v]};
  }
}

void AddCounts(const StoredCounts& part, StoredCounts* sum) {
  sum->casts.saturated += part.casts.saturated;
  sum->casts.to_zero += part.casts.to_zero;
  sum->casts.not_finite += part.casts.not_finite;
  sum->error2 += part.error2, sum->value2 += part.value2;
  sum->elements += part.elements;
}

}  // namespace

double ResultLoss::Error() const { return value2 > 0 ? std::sqrt(error2 / value2) : 0; }

void ResultLoss::Add(const ResultLoss& other) {
  if (!other.seen()) return;
  error2 += other.error2 / other.share, value2 += other.value2 / other.share, loss2 += other.loss2 / other.share;
  floor = other.floor, share = 1;
}

void AddLoss(const OpLoss& part, OpLoss* sum) {
  AddCounts(part.input, &sum->input), AddCounts(part.weight, &sum->weight), AddCounts(part.gradient, &sum->gradient);
  sum->result.Add(part.result);
  sum->input_gradient.Add(part.input_gradient);
  sum->weight_gradient.Add(part.weight_gradient);
}

OpLoss LossOf(const MatrixPlan& plan, const MatrixProduct& product, int64_t most) {
  OpLoss out;
  DenseMatrix a, b, gradient;
  out.input = StoreAndRead(plan.input, plan.rules, product.largest_a, product.a, &a);
  out.weight = StoreAndRead(plan.weight, plan.rules, product.largest_b, product.b, &b);
  out.result = Multiply(product.a, product.b, a, b, product.gradient, FloorOf(plan.input, plan.weight), most);
  if (product.gradient.rows == 0) return out;
  // The scales of a backward product lie along its own sums: over the outputs for the input's gradient, over the rows
  // for the weight's.
  const DenseMatrix none;
  out.gradient = StoreAndRead(plan.gradient, plan.rules, product.largest_gradient, product.gradient, &gradient);
  const DenseMatrix b_turned = product.b.Transposed();
  StoreAndRead(plan.weight, plan.rules, product.largest_b, b_turned, &b);
  out.input_gradient =
      Multiply(product.gradient, b_turned, gradient, b, none, FloorOf(plan.gradient, plan.weight), most);
  const DenseMatrix gradient_turned = product.gradient.Transposed(), a_turned = product.a.Transposed();
  StoreAndRead(plan.gradient, plan.rules, product.largest_gradient, gradient_turned, &gradient);
  StoreAndRead(plan.input, plan.rules, product.largest_a, a_turned, &a);
  out.weight_gradient =
      Multiply(gradient_turned, a_turned, gradient, a, none, FloorOf(plan.gradient, plan.input), most);
  return out;
}

OpLoss LossOf(const MatrixPlan& plan, const AttentionHead& head, int64_t most) {
  OpLoss out;
  DenseMatrix query, key, value;
  out.input = StoreAndRead(plan.input, plan.rules, head.largest_query, head.query, &query);
  AddCounts(StoreAndRead(plan.input, plan.rules, head.largest_key, head.key, &key), &out.input);
  AddCounts(StoreAndRead(plan.input, plan.rules, head.largest_value, head.value, &value), &out.input);
  const int64_t each = std::max<int64_t>(head.key.rows * (head.key.cols + head.value.cols), 1);
  const std::vector<int64_t> rows = SampleOf(head.query.rows, most / each);
  ResultWatch watch(head.query.rows, static_cast<int64_t>(rows.size()), plan.input.Floor() * std::sqrt(3.0));
  std::vector<double> weights(static_cast<size_t>(head.key.rows));
  std::vector<double> full(static_cast<size_t>(head.value.cols)), stored(full.size());
  for (const int64_t r : rows) {
    const float* bias = head.bias.rows > 0 ? head.bias.Row(r) : nullptr;
    AttendRow(head.query.Row(r), head, head.key, head.value, bias, &weights, &full);
    AttendRow(query.Row(r), head, key, value, bias, &weights, &stored);
    for (size_t v = 0; v < full.size(); ++v)
      watch.Element(full[v], stored[v], head.gradient.rows > 0 ? double{head.gradient.Row(r)[v]} : 0);
    watch.EndRow();
  }
  out.result = watch.loss();
  return out;
}

}  // namespace msprobe
