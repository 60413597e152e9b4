#include "compare/values/dimension_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "compare/metrics/measure.h"
#include "tensor/kernels/pair_metrics.h"

namespace msprobe {
namespace {

constexpr size_t kMostDims = 6;
constexpr size_t kMostOrders = 256;
constexpr int64_t kSample = 1 << 18;     // elements
constexpr double kClearlyBetter = 0.25;  // of the error of the order in which they lie, where shapes allow it
constexpr double kBetter = 0.99;         // of the error of another order

/// Without dimensions of 1.
FileTensor Squeezed(const FileTensor& tensor) {
  FileTensor out = tensor;
  out.shape.clear();
  out.strides.clear();
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] == 1) continue;
    out.shape.push_back(tensor.shape[d]);
    out.strides.push_back(tensor.strides[d]);
  }
  return out;
}

FileTensor Permuted(const FileTensor& tensor, const std::vector<size_t>& order) {
  FileTensor out = tensor;
  for (size_t d = 0; d < order.size(); ++d) {
    out.shape[d] = tensor.shape[order[d]];
    out.strides[d] = tensor.strides[order[d]];
  }
  return out;
}

/// Products of the last 1, 2, ... dimensions; nothing where they cannot be counted.
std::optional<std::vector<int64_t>> Products(const std::vector<int64_t>& shape) {
  std::vector<int64_t> out;
  int64_t product = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] <= 0 || __builtin_mul_overflow(product, shape[d], &product)) return std::nullopt;
    out.push_back(product);
  }
  return out;
}

/// The dimensions of `tensor` cut where `products` say, which hold its own.
FileTensor Cut(const FileTensor& tensor, const std::vector<int64_t>& products) {
  FileTensor out = tensor;
  out.shape.clear();
  out.strides.clear();
  size_t d = tensor.shape.size();
  int64_t before = 1, within = 1, stride = 0;  // within: of the dimension at hand what is cut already
  for (const int64_t product : products) {
    if (within == 1) stride = tensor.strides[--d];
    const int64_t size = product / before;
    out.shape.insert(out.shape.begin(), size);
    out.strides.insert(out.strides.begin(), stride * within);
    within *= size;
    before = product;
    if (within == tensor.shape[d]) within = 1;
  }
  return out;
}

/// Both with common dimensions; nothing where one would have to be cut in the middle of an element of the other.
bool Refine(FileTensor* a, FileTensor* b) {
  const auto x = Products(a->shape), y = Products(b->shape);
  if (!x || !y || x->empty() || y->empty() || x->back() != y->back()) return false;
  std::vector<int64_t> all;
  std::set_union(x->begin(), x->end(), y->begin(), y->end(), std::back_inserter(all));
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i] % all[i - 1] != 0) return false;
  }
  *a = Cut(*a, all);
  *b = Cut(*b, all);
  return true;
}

std::string OrderText(const char* side, const std::vector<size_t>& order) {
  std::string out = std::string(side) + " dimensions in the order (";
  for (size_t d = 0; d < order.size(); ++d) out += (d > 0 ? ", " : "") + std::to_string(order[d]);
  return out + ")";
}

/// The numbers that the dimensions have with those of 1.
std::vector<size_t> Numbers(const FileTensor& tensor, const std::vector<size_t>& order) {
  std::vector<size_t> counted, out;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] != 1) counted.push_back(d);
  }
  for (const size_t d : order) out.push_back(counted[d]);
  return out;
}

/// `fixed` against all orders of `turned`.
void AddOrders(const FileTensor& fixed, const FileTensor& turned, bool golden_turns, std::vector<OrderedPair>* out) {
  const FileTensor stays = Squeezed(fixed), turns = Squeezed(turned);
  std::vector<size_t> order(turns.shape.size());
  std::iota(order.begin(), order.end(), size_t{0});
  bool plain = true;
  do {
    if (out->size() >= kMostOrders) return;
    FileTensor a = stays, b = Permuted(turns, order);
    if ((plain && !golden_turns) || !Refine(&a, &b)) {
      plain = false;
      continue;
    }
    OrderedPair pair;
    pair.target = golden_turns ? a : b;
    pair.golden = golden_turns ? b : a;
    pair.alike = stays.shape == turns.shape;
    if (!plain) pair.order = OrderText(golden_turns ? "Bench" : "NPU", Numbers(turned, order));
    out->push_back(std::move(pair));
    plain = false;
  } while (std::next_permutation(order.begin(), order.end()));
}

/// The middle of each dimension, so that no more than some elements are left.
OrderedPair SampleOf(const OrderedPair& pair) {
  OrderedPair out = pair;
  int64_t count = 1;
  for (const int64_t n : pair.target.shape) count *= n;
  for (size_t d = 0; d < out.target.shape.size() && count > kSample; ++d) {
    const int64_t own = out.target.shape[d], rest = count / own;
    const int64_t left = std::clamp<int64_t>(kSample / std::max<int64_t>(rest, 1), std::min<int64_t>(own, 2), own);
    const int64_t first = (own - left) / 2;
    for (FileTensor* tensor : {&out.target, &out.golden}) {
      const auto element = static_cast<int64_t>(ElementSize(tensor->dtype));
      tensor->data = static_cast<const char*>(tensor->data) + first * tensor->strides[d] * element;
      tensor->shape[d] = left;
    }
    count = rest * left;
  }
  return out;
}

}  // namespace

std::vector<OrderedPair> PossibleOrders(const FileTensor& target, const FileTensor& golden) {
  std::vector<OrderedPair> out;
  const size_t dims = std::max(Squeezed(target).shape.size(), Squeezed(golden).shape.size());
  if (dims == 0 || dims > kMostDims) return out;
  AddOrders(target, golden, true, &out);
  AddOrders(golden, target, false, &out);
  return out;
}

double SampledError(const OrderedPair& pair) {
  const OrderedPair sample = SampleOf(pair);
  const TensorMetrics m = MeasureTensors(sample.target.view(), sample.golden.view());
  if (m.state != PairState::kCompared || m.differ > 0) return 2;
  const double scale = std::max(m.rms_target, m.rms_golden);
  return m.rms_diff == 0 ? 0 : scale > 0 ? m.rms_diff / scale : 2;
}

const OrderedPair* BestOrder(const std::vector<OrderedPair>& orders) {
  const OrderedPair* best = nullptr;
  double least = 0;
  for (const OrderedPair& pair : orders) {
    const double error = SampledError(pair);
    const bool plain = best && best->order.empty() && best->alike;
    if (best && error >= least * (plain ? kClearlyBetter : kBetter)) continue;
    best = &pair;
    least = error;
    if (least == 0) break;
  }
  return best;
}

}  // namespace msprobe
