#include "weights/distributed_optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "tensor/kernels/metrics_sources.h"

namespace msprobe {
namespace {

constexpr int64_t kAlign = 64;   // elements
constexpr int64_t kSample = 32;  // elements at each end of a weight that are looked at
constexpr std::string_view kParam = "param";

/// The tensors of a buffer: fp32 weights, moments.
struct OptimBuffer {
  std::vector<std::pair<std::string_view, const PtTensor*>> states;
  const PtTensor* weights = nullptr;
};

void CollectBuffers(const PtValue& value, int level, std::vector<OptimBuffer>* out) {  // NOLINT(misc-no-recursion)
  constexpr int kMostLevels = 4;  // optimizers, buffers, types, buckets
  OptimBuffer buffer;
  for (size_t i = 0; value.kind == PtValue::Kind::kDict && i + 1 < value.items.size(); i += 2) {
    const PtValue &key = value.items[i], &item = value.items[i + 1];
    const bool flat = item.kind == PtValue::Kind::kTensor && key.kind == PtValue::Kind::kText &&
                      item.tensor.shape.size() == 1 && item.tensor.strides[0] == 1;
    if (!flat) continue;
    buffer.states.emplace_back(key.text, &item.tensor);
    if (key.text == kParam) buffer.weights = &item.tensor;
  }
  if (buffer.weights) return out->push_back(std::move(buffer));
  if (level >= kMostLevels) return;
  for (const PtValue& item : value.items) CollectBuffers(item, level + 1, out);
}

bool IsParameter(const WeightTensor& t) {
  constexpr std::array<std::string_view, 4> kBuffers{"expert_bias", "tokens_per_expert", "inv_freq", "_extra_state"};
  return IsFloating(t.dtype) && t.elements() > 0 &&
         std::none_of(kBuffers.begin(), kBuffers.end(), [&](auto ending) { return t.name.ends_with(ending); });
}

bool IsExpert(const WeightTensor& t) { return t.name.find(".experts.") != std::string::npos; }

/// Weights that lie in one buffer.
struct OptimGroup {
  size_t chunk;
  std::vector<const WeightTensor*> weights;
};

/// Dense weights of all chunks, then those of experts, which have an optimizer of their own; last first.
std::vector<OptimGroup> GroupsOf(const std::vector<std::vector<WeightTensor>>& model) {
  std::vector<OptimGroup> out;
  for (const bool experts : {false, true}) {
    for (size_t chunk = 0; chunk < model.size(); ++chunk) {
      OptimGroup group{chunk, {}};
      for (const WeightTensor& t : model[chunk]) {
        if (IsParameter(t) && IsExpert(t) == experts) group.weights.push_back(&t);
      }
      std::reverse(group.weights.begin(), group.weights.end());
      if (!group.weights.empty()) out.push_back(std::move(group));
    }
  }
  return out;
}

/// How far a number of the type may be from the one that was rounded to it.
double HalfStep(DType t) {
  if (t == DType::kBFloat16) return std::ldexp(1.0, -8);
  if (t == DType::kFloat16) return std::ldexp(1.0, -11);
  return ElementSize(t) == 1 ? std::ldexp(1.0, -3) : std::ldexp(1.0, -24);
}

bool RoundsTo(const PtTensor& flat, int64_t at, const WeightTensor& t) {
  const int64_t count = t.elements();
  if (at < 0 || at > flat.shape[0] - count) return false;
  const double step = HalfStep(t.dtype);
  for (const int64_t first : {int64_t{0}, std::max<int64_t>(0, count - kSample)}) {
    const int64_t n = std::min(kSample, count - first);
    std::vector<char> bytes(static_cast<size_t>(n) * ElementSize(t.dtype));
    std::vector<double> model(static_cast<size_t>(n)), own(static_cast<size_t>(n));
    GatherElements(t, first, first + n, bytes.data());
    const char* from = static_cast<const char*>(flat.data) + static_cast<size_t>(at + first) * ElementSize(flat.dtype);
    if (!metrics::ToDoubles(t.dtype, bytes.data(), model.size(), model.data()) ||
        !metrics::ToDoubles(flat.dtype, from, own.size(), own.data()))
      return false;
    for (size_t i = 0; i < model.size(); ++i) {
      const double tiny = 1e-7 * step;  // numbers below the normal ones of the type
      if (!(std::fabs(model[i] - own[i]) <= step * std::fabs(model[i]) + tiny)) return false;
    }
  }
  return true;
}

bool CutBuffer(const OptimBuffer& buffer, const std::vector<const WeightTensor*>& group, int file,
               std::vector<WeightTensor>* out) {
  const PtTensor& flat = *buffer.weights;
  for (const auto& [key, tensor] : buffer.states) {
    if (tensor->shape != flat.shape) return false;
  }
  int64_t bucket = 0, at = 0;
  for (const WeightTensor* t : group) {
    const int64_t aligned = bucket + (at - bucket + kAlign - 1) / kAlign * kAlign;
    if (RoundsTo(flat, aligned, *t)) {
      at = aligned;
    } else if (RoundsTo(flat, at, *t)) {
      bucket = at;
    } else {
      return false;
    }
    for (const auto& [key, tensor] : buffer.states) {
      WeightTensor state;
      state.name = std::string(key) + "." + t->name;
      state.dtype = tensor->dtype;
      state.shape = t->shape;
      const char* from = static_cast<const char*>(tensor->data) + static_cast<size_t>(at) * ElementSize(tensor->dtype);
      if (!AddFlat(0, t->elements(), from, file, &state)) return false;
      out->push_back(std::move(state));
    }
    at += t->elements();
  }
  return true;
}

}  // namespace

bool CutDistributedOptimizer(const PtValue& saved, int file, const std::vector<std::vector<WeightTensor>>& model,
                             std::vector<std::vector<WeightTensor>>* out) {
  std::vector<OptimBuffer> buffers;
  CollectBuffers(saved, 0, &buffers);
  const std::vector<OptimGroup> groups = GroupsOf(model);
  if (buffers.empty() || buffers.size() != groups.size()) return false;
  std::vector<std::vector<WeightTensor>> cut(model.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!CutBuffer(buffers[i], groups[i].weights, file, &cut[groups[i].chunk])) return false;
  }
  *out = std::move(cut);
  return true;
}

}  // namespace msprobe
