#include "rollout/stages/head_facts.h"

#include <map>

#include "weights/role_words.h"

namespace msprobe {
namespace {

struct PartRows {
  int64_t q = 0, k = 0;
  int64_t head = 0;  // of a norm of each head
};

/// Of the first layer that has q and k apart.
PartRows PartsOf(const Checkpoint& checkpoint) {
  std::map<int64_t, PartRows> layers;
  for (const WeightTensor& tensor : checkpoint.tensors) {
    const WeightName name = ParseWeightName(tensor.name);
    if (name.layer < 0 || tensor.shape.empty() || name.param != "weight") continue;
    PartRows& rows = layers[name.layer];
    if (name.what == "attention.q" && tensor.shape.size() == 2) rows.q = tensor.shape[0];
    if (name.what == "attention.k" && tensor.shape.size() == 2) rows.k = tensor.shape[0];
    const bool norm = name.leaf == "k_norm" || name.leaf == "k_layernorm";
    if (norm && tensor.shape.size() == 1) rows.head = tensor.shape[0];
  }
  for (const auto& [layer, rows] : layers) {
    if (rows.q > 0 && rows.k > 0 && rows.q % rows.k == 0) return rows;
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

}  // namespace

bool InferHeads(Checkpoint* a, Checkpoint* b) {
  if (a->facts.heads > 0 || b->facts.heads > 0) return false;
  const PartRows of_a = PartsOf(*a), of_b = PartsOf(*b);
  // Both sides have the parts, or none has them.
  if ((of_a.q > 0) == (of_b.q > 0)) return false;
  const PartRows& rows = of_a.q > 0 ? of_a : of_b;
  const bool head = rows.head > 0 && rows.k % rows.head == 0;
  if (!head && HasGroups(of_a.q > 0 ? *b : *a)) return false;
  // Without the size of a head, one as wide as all keys falls into the same parts.
  const int64_t size = head ? rows.head : rows.k;
  a->facts.head_dim = size;
  a->facts.heads = rows.q / size;
  a->facts.groups = rows.k / size;
  return true;
}

}  // namespace msprobe
