#include "lowp/op_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace msprobe {
namespace {

constexpr int64_t kMostParts = 16;                     // batches, groups or heads of one call
constexpr int64_t kMostMultiplied = int64_t{1} << 27;  // for one result of one call under one plan
constexpr double kOutlier = 20;                        // times the median channel
constexpr float kMasked = -std::numeric_limits<float>::infinity();

float LargestFor(const RecordedTensor& tensor, float now, const ScaledFormat& format) {
  return format.group == ScaleGroup::kDelayed && tensor.history > 0 ? static_cast<float>(tensor.history) : now;
}

OutlierChannels OutliersOf(const DenseMatrix& input) {
  std::vector<float> channels(static_cast<size_t>(input.cols));
  for (int64_t r = 0; r < input.rows; ++r) {
    for (int64_t c = 0; c < input.cols; ++c) {
      const float v = std::fabs(input.Row(r)[c]);
      if (std::isfinite(v)) channels[static_cast<size_t>(c)] = std::max(channels[static_cast<size_t>(c)], v);
    }
  }
  if (channels.empty()) return {};
  std::vector<float> sorted = channels;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2), sorted.end());
  const double median = sorted[sorted.size() / 2];
  if (median == 0) return {};
  OutlierChannels out;
  const auto top = std::max_element(channels.begin(), channels.end());
  out.largest = top - channels.begin(), out.times = *top / median;
  out.count = std::count_if(channels.begin(), channels.end(), [&](float v) { return v > kOutlier * median; });
  return out;
}

/// The numbers of the dimensions, C order, that `index` stands for in `shape`; 0 where `of` has one only.
int64_t BroadcastIndex(int64_t index, const std::vector<int64_t>& shape, const std::vector<int64_t>& of) {
  int64_t out = 0, step = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    const size_t from_last = d;
    const int64_t n = shape[shape.size() - 1 - from_last], at = index % n;
    index /= n;
    if (from_last >= of.size()) continue;
    const int64_t m = of[of.size() - 1 - from_last];
    // Heads that share a key stand beside each other.
    out += step * (m == n ? at : n % m == 0 ? at / (n / m) : 0);
    step *= m;
  }
  return out;
}

std::vector<int64_t> Leading(const std::vector<int64_t>& shape, size_t without) {
  return {shape.begin(), shape.end() - static_cast<ptrdiff_t>(std::min(without, shape.size()))};
}

int64_t Product(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

class OpMeasure {
 public:
  OpMeasure(const MatrixOp& op, const std::vector<MatrixPlan>& plans) : op_(op), plans_(plans) {
    out_.by_plan.resize(plans.size());
  }

  StatusOr<OpLosses> Measure() {
    MSP_ASSIGN_OR_RETURN(a_, OpenTensor::Open(op_.a));
    MSP_ASSIGN_OR_RETURN(b_, OpenTensor::Open(op_.b));
    MSP_ASSIGN_OR_RETURN(largest_a_, a_.Largest());
    MSP_ASSIGN_OR_RETURN(largest_b_, b_.Largest());
    if (op_.gradient.there()) {
      MSP_ASSIGN_OR_RETURN(gradient_, OpenTensor::Open(op_.gradient));
      MSP_ASSIGN_OR_RETURN(largest_gradient_, gradient_.Largest());
    }
    Status status;
    switch (op_.kind) {
      case MatrixOpKind::kLinear: status = Linear(); break;
      case MatrixOpKind::kMatmul: status = Matmul(); break;
      case MatrixOpKind::kConvolution: status = Convolution(); break;
      case MatrixOpKind::kAttention: status = Attention(); break;
    }
    MSP_RETURN_IF_ERROR(status);
    return std::move(out_);
  }

 private:
  Status NotMeasured(Message why) {
    out_.not_measured = std::move(why);
    return OkStatus();
  }

  std::vector<int64_t> Sampled(int64_t n, int64_t most) {
    out_.sampled = out_.sampled || n > most;
    return SampleOf(n, most);
  }

  void Count(MatrixProduct product, size_t parts) {
    if (out_.outliers.times == 0) out_.outliers = OutliersOf(product.a);
    for (size_t p = 0; p < plans_.size(); ++p) {
      product.largest_a = LargestFor(op_.a, largest_a_, plans_[p].input);
      product.largest_b = LargestFor(op_.b, largest_b_, plans_[p].weight);
      product.largest_gradient = LargestFor(op_.gradient, largest_gradient_, plans_[p].gradient);
      AddLoss(LossOf(plans_[p], product, kMostMultiplied / static_cast<int64_t>(parts)), &out_.by_plan[p]);
    }
  }

  Status Linear() {
    const int64_t terms = a_.shape().empty() ? 0 : a_.dim(0);
    if (b_.shape().size() != 2 || b_.dim(0) != terms || terms == 0)
      return NotMeasured(Msg("the shapes of its input and weight do not fit"));
    const int64_t rows = a_.count() / terms, outputs = b_.dim(1);
    out_.work = static_cast<double>(rows) * static_cast<double>(terms) * static_cast<double>(outputs);
    const std::vector<int64_t> some_rows = Sampled(rows, kMostHeld / std::max(terms, outputs));
    const std::vector<int64_t> some_outputs = Sampled(outputs, kMostHeld / terms);
    MatrixProduct product;
    MSP_ASSIGN_OR_RETURN(product.a, a_.Rows(terms, some_rows));
    MSP_ASSIGN_OR_RETURN(product.b, b_.Rows(terms, some_outputs));
    if (op_.gradient.there() && gradient_.count() == rows * outputs) {
      MSP_ASSIGN_OR_RETURN(const DenseMatrix whole, gradient_.Rows(outputs, some_rows));
      product.gradient = DenseMatrix(whole.rows, product.b.rows);
      for (int64_t r = 0; r < whole.rows; ++r) {
        for (int64_t c = 0; c < product.b.rows; ++c)
          product.gradient.Row(r)[c] = whole.Row(r)[some_outputs[static_cast<size_t>(c)]];
      }
    }
    Count(std::move(product), 1);
    return OkStatus();
  }

  Status Matmul() {
    if (a_.shape().size() < 2 || b_.shape().size() < 2 || a_.dim(0) != b_.dim(1))
      return NotMeasured(Msg("it multiplies by a vector"));
    const int64_t rows = a_.dim(1), terms = a_.dim(0), outputs = b_.dim(0);
    const std::vector<int64_t> a_batch = Leading(a_.shape(), 2), b_batch = Leading(b_.shape(), 2);
    const std::vector<int64_t>& batch = Product(a_batch) >= Product(b_batch) ? a_batch : b_batch;
    const int64_t count = Product(batch);
    if (rows * terms > kMostHeld || terms * outputs > kMostHeld) return NotMeasured(Msg("its matrices are too large"));
    out_.work = static_cast<double>(count) * static_cast<double>(rows) * static_cast<double>(terms) *
                static_cast<double>(outputs);
    const bool with_gradient = op_.gradient.there() && gradient_.count() == count * rows * outputs;
    const std::vector<int64_t> some = Sampled(count, kMostParts);
    for (const int64_t at : some) {
      MatrixProduct product{DenseMatrix(rows, terms), {}, {}};
      DenseMatrix b(terms, outputs);
      const int64_t i = BroadcastIndex(at, batch, a_batch) * rows * terms;
      const int64_t j = BroadcastIndex(at, batch, b_batch) * terms * outputs;
      MSP_RETURN_IF_ERROR(a_.Read(i, i + rows * terms, product.a.values.data()));
      MSP_RETURN_IF_ERROR(b_.Read(j, j + terms * outputs, b.values.data()));
      product.b = b.Transposed();
      if (with_gradient) {
        product.gradient = DenseMatrix(rows, outputs);
        MSP_RETURN_IF_ERROR(
            gradient_.Read(at * rows * outputs, (at + 1) * rows * outputs, product.gradient.values.data()));
      }
      Count(std::move(product), some.size());
    }
    return OkStatus();
  }

  Status Convolution();
  Status Attention();
  /// What is added to the scores of one head, causal masks included.
  StatusOr<DenseMatrix> BiasOf(const OpenTensor* mask, int64_t at, const std::vector<int64_t>& batch,
                               const std::vector<int64_t>& rows, int64_t keys) const;

  const MatrixOp& op_;
  const std::vector<MatrixPlan>& plans_;
  OpenTensor a_, b_, gradient_;
  float largest_a_ = 0, largest_b_ = 0, largest_gradient_ = 0;
  OpLosses out_;
};

/// Each place of the result is a row: what the window sees there.
Status OpMeasure::Convolution() {
  const ConvolutionShape& shape = op_.convolution;
  const size_t dims = b_.shape().size() - 2;
  if (!shape.known || a_.shape().size() != dims + 2)
    return NotMeasured(Msg("its stride and padding were not recorded"));
  const int64_t batch = a_.shape()[0], channels = a_.shape()[1], outputs = b_.shape()[0], in_group = b_.shape()[1];
  if (shape.groups < 1 || channels != in_group * shape.groups || outputs % shape.groups != 0)
    return NotMeasured(Msg("the shapes of its input and weight do not fit"));
  std::vector<int64_t> places(dims), window(b_.shape().begin() + 2, b_.shape().end());
  for (size_t d = 0; d < dims; ++d) {
    const int64_t covered = shape.dilation[d] * (window[d] - 1) + 1;
    if (shape.stride[d] < 1) return NotMeasured(Msg("its stride and padding were not recorded"));
    places[d] = (a_.shape()[d + 2] + 2 * shape.padding[d] - covered) / shape.stride[d] + 1;
    if (places[d] < 1) return NotMeasured(Msg("the shapes of its input and weight do not fit"));
  }
  const int64_t space = Product({a_.shape().begin() + 2, a_.shape().end()}), result = Product(places),
                seen = Product(window);
  const int64_t terms = in_group * seen, per_group = outputs / shape.groups;
  if (batch * channels * space > kMostHeld || outputs * terms > kMostHeld)
    return NotMeasured(Msg("its matrices are too large"));
  out_.work = static_cast<double>(batch * result) * static_cast<double>(terms) * static_cast<double>(outputs);
  std::vector<float> input(static_cast<size_t>(batch * channels * space)), weight(static_cast<size_t>(outputs * terms)),
      gradient;
  MSP_RETURN_IF_ERROR(a_.Read(0, static_cast<int64_t>(input.size()), input.data()));
  MSP_RETURN_IF_ERROR(b_.Read(0, static_cast<int64_t>(weight.size()), weight.data()));
  if (op_.gradient.there() && gradient_.count() == batch * outputs * result) {
    gradient.resize(static_cast<size_t>(gradient_.count()));
    MSP_RETURN_IF_ERROR(gradient_.Read(0, gradient_.count(), gradient.data()));
  }
  const std::vector<int64_t> groups = Sampled(shape.groups, kMostParts);
  const std::vector<int64_t> rows = Sampled(batch * result, kMostHeld / static_cast<int64_t>(groups.size()) / terms);
  for (const int64_t g : groups) {
    MatrixProduct product{DenseMatrix(static_cast<int64_t>(rows.size()), terms), DenseMatrix(per_group, terms), {}};
    std::copy_n(weight.begin() + g * per_group * terms, per_group * terms, product.b.values.begin());
    if (!gradient.empty()) product.gradient = DenseMatrix(product.a.rows, per_group);
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t n = rows[i] / result, place = rows[i] % result;
      float* row = product.a.Row(static_cast<int64_t>(i));
      for (int64_t t = 0; t < terms; ++t) {
        const int64_t c = g * in_group + t / seen;
        int64_t in_window = t % seen, at_place = place, offset = 0, step = 1;
        bool inside = true;
        for (size_t d = dims; d-- > 0;) {
          const int64_t x =
              at_place % places[d] * shape.stride[d] - shape.padding[d] + in_window % window[d] * shape.dilation[d];
          inside = inside && x >= 0 && x < a_.shape()[d + 2];
          offset += x * step, step *= a_.shape()[d + 2];
          in_window /= window[d], at_place /= places[d];
        }
        row[t] = inside ? input[static_cast<size_t>((n * channels + c) * space + offset)] : 0;
      }
      for (int64_t o = 0; !gradient.empty() && o < per_group; ++o)
        product.gradient.Row(static_cast<int64_t>(i))[o] =
            gradient[static_cast<size_t>((n * outputs + g * per_group + o) * result + place)];
    }
    Count(std::move(product), groups.size());
  }
  return OkStatus();
}

StatusOr<DenseMatrix> OpMeasure::BiasOf(const OpenTensor* mask, int64_t at, const std::vector<int64_t>& batch,
                                        const std::vector<int64_t>& rows, int64_t keys) const {
  DenseMatrix bias;
  if (mask == nullptr && !op_.causal) return bias;
  bias = DenseMatrix(static_cast<int64_t>(rows.size()), keys);
  for (size_t i = 0; i < rows.size(); ++i) {
    float* row = bias.Row(static_cast<int64_t>(i));
    if (mask != nullptr) {
      const int64_t lines = mask->dim(1), wide = mask->dim(0);
      const int64_t head = BroadcastIndex(at, batch, Leading(mask->shape(), 2));
      const int64_t begin = (head * lines + (lines == 1 ? 0 : rows[i])) * wide;
      MSP_RETURN_IF_ERROR(mask->Read(begin, begin + wide, row));
      if (wide == 1) std::fill(row + 1, row + keys, row[0]);
      if (op_.mask.dtype == DType::kBool)
        std::transform(row, row + keys, row, [](float v) { return v != 0 ? 0 : kMasked; });
    }
    for (int64_t s = rows[i] + 1; op_.causal && s < keys; ++s) row[s] = kMasked;
  }
  return bias;
}

Status OpMeasure::Attention() {
  MSP_ASSIGN_OR_RETURN(const OpenTensor value, OpenTensor::Open(op_.value));
  MSP_ASSIGN_OR_RETURN(const float largest_value, value.Largest());
  if (a_.shape().size() < 3 || b_.shape().size() != a_.shape().size() || value.shape().size() != a_.shape().size() ||
      a_.dim(0) != b_.dim(0) || value.dim(1) != b_.dim(1))
    return NotMeasured(Msg("the shapes of its query, key and value do not fit"));
  OpenTensor mask;
  if (op_.mask.there()) {
    MSP_ASSIGN_OR_RETURN(mask, OpenTensor::Open(op_.mask));
    if (mask.shape().size() < 2 || (mask.dim(0) != b_.dim(1) && mask.dim(0) != 1))
      return NotMeasured(Msg("the shape of its mask does not fit"));
  }
  const int64_t length = a_.dim(1), keys = b_.dim(1), wide = a_.dim(0), out = value.dim(0);
  const std::vector<int64_t> batch = Leading(a_.shape(), 2), key_batch = Leading(b_.shape(), 2);
  const int64_t heads = Product(batch);
  if (keys * std::max(wide, out) > kMostHeld) return NotMeasured(Msg("its matrices are too large"));
  out_.work = static_cast<double>(heads) * static_cast<double>(length) * static_cast<double>(keys) *
              static_cast<double>(wide + out);
  const std::vector<int64_t> some = Sampled(heads, kMostParts);
  const std::vector<int64_t> rows = Sampled(length, kMostHeld / std::max({keys, wide, out}));
  const bool with_gradient = op_.gradient.there() && gradient_.count() == heads * length * out;
  for (const int64_t at : some) {
    AttentionHead head;
    const int64_t key_at = BroadcastIndex(at, batch, key_batch);
    const auto rows_of = [&](const OpenTensor& tensor, int64_t cols, int64_t which, int64_t lines,
                             const std::vector<int64_t>& of) {
      std::vector<int64_t> from;
      for (const int64_t r : of) from.push_back(which * lines + r);
      return tensor.Rows(cols, from);
    };
    const std::vector<int64_t> all = SampleOf(keys, keys);
    MSP_ASSIGN_OR_RETURN(head.query, rows_of(a_, wide, at, length, rows));
    MSP_ASSIGN_OR_RETURN(head.key, rows_of(b_, wide, key_at, keys, all));
    MSP_ASSIGN_OR_RETURN(head.value, rows_of(value, out, key_at, keys, all));
    if (with_gradient) {
      MSP_ASSIGN_OR_RETURN(head.gradient, rows_of(gradient_, out, at, length, rows));
    }
    MSP_ASSIGN_OR_RETURN(head.bias, BiasOf(op_.mask.there() ? &mask : nullptr, at, batch, rows, keys));
    head.scale = op_.attention_scale > 0 ? op_.attention_scale : 1 / std::sqrt(static_cast<double>(wide));
    for (size_t p = 0; p < plans_.size(); ++p) {
      head.largest_query = LargestFor(op_.a, largest_a_, plans_[p].input);
      head.largest_key = LargestFor(op_.b, largest_b_, plans_[p].input);
      head.largest_value = LargestFor(op_.value, largest_value, plans_[p].input);
      AddLoss(LossOf(plans_[p], head, kMostMultiplied / static_cast<int64_t>(some.size())), &out_.by_plan[p]);
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<OpLosses> LossesOf(const MatrixOp& op, const std::vector<MatrixPlan>& plans) {
  return OpMeasure(op, plans).Measure();
}

}  // namespace msprobe
