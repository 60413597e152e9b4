#include "weights/distributed_optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "tensor/kernels/finfo.h"
#include "tensor/kernels/metrics_sources.h"

namespace msprobe {
namespace {

constexpr int64_t kAlign = 64;   // elements
constexpr int64_t kSample = 32;  // elements at each end of a weight that are looked at
constexpr std::string_view kParam = "param";

void CollectBuffers(const PtValue& value, int level, int file,
                    std::vector<FlatStates>* out) {  // NOLINT(misc-no-recursion)
  constexpr int kMostLevels = 4;                     // optimizers, buffers, types, buckets
  FlatStates buffer;
  bool weights = false;
  for (size_t i = 0; value.kind == PtValue::Kind::kDict && i + 1 < value.items.size(); i += 2) {
    const PtValue &key = value.items[i], &item = value.items[i + 1];
    const bool flat = item.kind == PtValue::Kind::kTensor && key.kind == PtValue::Kind::kText &&
                      item.tensor->shape.size() == 1 && item.tensor->strides[0] == 1;
    if (!flat) continue;
    const PtTensor& t = *item.tensor;
    buffer.emplace_back(key.text, WholeTensor({"", t.dtype, t.data, t.shape, t.strides}, file));
    weights |= key.text == kParam;
  }
  if (weights) return out->push_back(std::move(buffer));
  if (level >= kMostLevels) return;
  for (const PtValue& item : value.items) CollectBuffers(item, level + 1, file, out);
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

/// Which weights the buffers of a file hold: with expert parallelism those of experts have an optimizer of their own,
/// behind the other, which a rank that is not the first of its copies does not save.
enum class Held : uint8_t { kExpertsBehind, kAllTogether, kExpertsAlone };

/// Weights of all chunks, last first.
std::vector<OptimGroup> GroupsOf(const std::vector<std::vector<WeightTensor>>& model, Held held) {
  std::vector<OptimGroup> out;
  for (const bool experts : {false, true}) {
    if (experts ? held == Held::kAllTogether : held == Held::kExpertsAlone) continue;
    for (size_t chunk = 0; chunk < model.size(); ++chunk) {
      OptimGroup group{chunk, {}};
      for (const WeightTensor& t : model[chunk]) {
        if (IsParameter(t) && (held == Held::kAllTogether || IsExpert(t) == experts)) group.weights.push_back(&t);
      }
      std::reverse(group.weights.begin(), group.weights.end());
      if (!group.weights.empty()) out.push_back(std::move(group));
    }
  }
  return out;
}

bool RoundsTo(const WeightTensor& flat, int64_t at, const WeightTensor& t) {
  const int64_t count = t.elements();
  if (at < 0 || at > flat.shape[0] - count) return false;
  const double step = InfoOf(t.dtype).unit();
  for (const int64_t first : {int64_t{0}, std::max<int64_t>(0, count - kSample)}) {
    const int64_t n = std::min(kSample, count - first);
    std::vector<char> bytes(static_cast<size_t>(n) * ElementSize(t.dtype));
    std::vector<double> model(static_cast<size_t>(n)), own(static_cast<size_t>(n));
    GatherElements(t, first, first + n, bytes.data());
    std::vector<char> from(static_cast<size_t>(n) * ElementSize(flat.dtype));
    GatherElements(flat, at + first, at + first + n, from.data());
    if (!metrics::ToDoubles(t.dtype, bytes.data(), model.size(), model.data()) ||
        !metrics::ToDoubles(flat.dtype, from.data(), own.size(), own.data()))
      return false;
    for (size_t i = 0; i < model.size(); ++i) {
      const double tiny = 1e-7 * step;  // numbers below the normal ones of the type
      if (!(std::fabs(model[i] - own[i]) <= step * std::fabs(model[i]) + tiny)) return false;
    }
  }
  return true;
}

/// Elements [at, at + count) of a flat tensor, as all of `out`.
bool TakeStretch(const WeightTensor& flat, int64_t at, WeightTensor* out) {
  const int64_t end = at + out->elements();
  for (const WeightBlock& block : flat.blocks) {
    const int64_t first = std::max(at, block.begin[0]), last = std::min(end, block.begin[0] + block.size[0]);
    if (first >= last) continue;
    if (block.size[0] > 1 && block.strides[0] != 1) return false;
    const char* from =
        static_cast<const char*>(block.data) + static_cast<size_t>(first - block.begin[0]) * ElementSize(block.dtype);
    if (!AddFlat(first - at, last - first, from, block.file, out)) return false;
  }
  return true;
}

bool CutBuffer(const FlatStates& buffer, const std::vector<const WeightTensor*>& group,
               std::vector<WeightTensor>* out) {
  const WeightTensor* weights = nullptr;
  for (const auto& [key, tensor] : buffer) {
    if (key == kParam) weights = &tensor;
  }
  if (!weights) return false;
  for (const auto& [key, tensor] : buffer) {
    if (tensor.shape != weights->shape) return false;
  }
  int64_t bucket = 0, at = 0;
  for (const WeightTensor* t : group) {
    const int64_t aligned = bucket + (at - bucket + kAlign - 1) / kAlign * kAlign;
    if (RoundsTo(*weights, aligned, *t)) {
      at = aligned;
    } else if (RoundsTo(*weights, at, *t)) {
      bucket = at;
    } else {
      return false;
    }
    for (const auto& [key, tensor] : buffer) {
      WeightTensor state;
      state.name = key + "." + t->name;
      state.dtype = tensor.dtype;
      state.shape = t->shape;
      if (!TakeStretch(tensor, at, &state)) return false;
      out->push_back(std::move(state));
    }
    at += t->elements();
  }
  return true;
}

}  // namespace

std::vector<FlatStates> FlatStatesOf(const PtValue& saved, int file) {
  std::vector<FlatStates> out;
  CollectBuffers(saved, 0, file, &out);
  return out;
}

bool CutDistributedOptimizer(const PtValue& saved, int file, const std::vector<std::vector<WeightTensor>>& model,
                             std::vector<std::vector<WeightTensor>>* out) {
  return CutFlatStates(FlatStatesOf(saved, file), model, out);
}

bool CutFlatStates(const std::vector<FlatStates>& buffers, const std::vector<std::vector<WeightTensor>>& model,
                   std::vector<std::vector<WeightTensor>>* out) {
  for (const Held held : {Held::kExpertsBehind, Held::kAllTogether, Held::kExpertsAlone}) {
    const std::vector<OptimGroup> groups = GroupsOf(model, held);
    if (buffers.empty() || buffers.size() != groups.size()) continue;
    std::vector<std::vector<WeightTensor>> cut(model.size());
    bool all = true;
    for (size_t i = 0; all && i < buffers.size(); ++i)
      all = CutBuffer(buffers[i], groups[i].weights, &cut[groups[i].chunk]);
    if (!all) continue;
    *out = std::move(cut);
    return true;
  }
  return false;
}

}  // namespace msprobe
