#include "rollout/stages/head_facts.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "weights/causes/weight_rows.h"
#include "weights/role_words.h"

namespace msprobe {
namespace {

struct QkvParts {
  int64_t layer = -1;
  const WeightTensor *q = nullptr, *k = nullptr, *v = nullptr;
  int64_t head = 0;  // of a norm of each head
  int64_t rows() const { return q->shape[0] + 2 * k->shape[0]; }
};

/// Of the first layer that has q, k and v apart; without a layer where none has.
QkvParts PartsOf(const Checkpoint& checkpoint) {
  std::map<int64_t, QkvParts> layers;
  for (const WeightTensor& tensor : checkpoint.tensors) {
    const WeightName name = ParseWeightName(tensor.name);
    if (name.layer < 0 || tensor.shape.empty() || name.param != "weight" || IsAbsent(tensor)) continue;
    QkvParts& parts = layers[name.layer];
    parts.layer = name.layer;
    if (tensor.shape.size() == 2) {
      if (name.what == "attention.q") parts.q = &tensor;
      if (name.what == "attention.k") parts.k = &tensor;
      if (name.what == "attention.v") parts.v = &tensor;
    }
    const bool norm = name.leaf == "k_norm" || name.leaf == "k_layernorm";
    if (norm && tensor.shape.size() == 1) parts.head = tensor.shape[0];
  }
  for (const auto& [layer, parts] : layers) {
    if (parts.q && parts.k && parts.v && parts.k->shape == parts.v->shape && parts.q->shape[0] % parts.k->shape[0] == 0)
      return parts;
  }
  return {};
}

/// Fused q, k and v that are stored head by head: for these the size of a head must be known.
bool HasGroups(const Checkpoint& checkpoint) {
  for (const WeightTensor& tensor : checkpoint.tensors) {
    const std::string leaf = ParseWeightName(tensor.name).leaf;
    if (leaf == "query_key_value" || leaf == "linear_qkv") return true;
  }
  return false;
}

/// The values of the first columns.
std::vector<double> ValuesAtFront(const WeightTensor& tensor, int64_t columns) {
  constexpr int64_t kMost = int64_t{1} << 24;
  return ValuesOfWeight(SelectRanges(tensor, 1, {{0, columns}}, tensor.part), kMost);
}

/// Into how many groups of heads, [groups, (q, k, v)], the fused weight of the same layer must be cut to be the parts,
/// up to rounding and some updates; one where they lie behind each other as wholes. 0 where no way is by far the
/// nearest.
int64_t GroupsByValues(const QkvParts& parts, const Checkpoint& fused) {
  constexpr double kFar = 4;  // as far as the nearest, in squares
  constexpr int64_t kColumns = 64;
  for (const WeightTensor& tensor : fused.tensors) {
    const WeightName name = ParseWeightName(tensor.name);
    if (name.layer != parts.layer || !EndsWith(name.what, "qkv") || name.param != "weight") continue;
    if (tensor.shape != std::vector<int64_t>{parts.rows(), parts.q->shape[1]}) return 0;
    const int64_t columns = std::min(kColumns, parts.q->shape[1]), k = parts.k->shape[0];
    const std::vector<double> whole = ValuesAtFront(tensor, columns);
    const std::array own{ValuesAtFront(*parts.q, columns), ValuesAtFront(*parts.k, columns),
                         ValuesAtFront(*parts.v, columns)};
    if (whole.empty() || whole.size() != own[0].size() + own[1].size() + own[2].size()) return 0;
    double nearest = std::numeric_limits<double>::infinity(), second = nearest;
    int64_t out = 0;
    for (int64_t groups = 1; groups <= k; ++groups) {
      if (k % groups != 0) continue;
      double apart = 0;
      size_t at = 0;
      for (int64_t g = 0; g < groups; ++g) {
        for (const std::vector<double>& part : own) {
          const size_t size = part.size() / static_cast<size_t>(groups), begin = static_cast<size_t>(g) * size;
          for (size_t i = 0; i < size; ++i, ++at)
            apart += (whole[at] - part[begin + i]) * (whole[at] - part[begin + i]);
        }
      }
      if (apart < nearest) {
        second = nearest;
        nearest = apart;
        out = groups;
      } else {
        second = std::min(second, apart);
      }
    }
    return nearest * kFar <= second ? out : 0;
  }
  return 0;
}

}  // namespace

bool InferHeads(Checkpoint* a, Checkpoint* b) {
  if (a->facts.heads > 0 || b->facts.heads > 0) return false;
  const QkvParts of_a = PartsOf(*a), of_b = PartsOf(*b);
  // Both sides have the parts, or none has them.
  if ((of_a.layer >= 0) == (of_b.layer >= 0)) return false;
  const QkvParts& parts = of_a.layer >= 0 ? of_a : of_b;
  const Checkpoint& other = of_a.layer >= 0 ? *b : *a;
  const int64_t k = parts.k->shape[0];
  const bool grouped = HasGroups(other);
  int64_t groups = grouped ? GroupsByValues(parts, other) : 0;
  if (groups == 0 && parts.head > 0 && k % parts.head == 0) groups = k / parts.head;
  if (groups == 0 && grouped) return false;
  // Without the size of a head, one as wide as all keys falls into the same parts.
  const int64_t size = groups > 0 ? k / groups : k;
  a->facts.head_dim = size;
  a->facts.heads = parts.q->shape[0] / size;
  a->facts.groups = k / size;
  return true;
}

}  // namespace msprobe
