#include "weights/roles.h"

#include <fmt/format.h>

#include <algorithm>

#include "weights/role_words.h"

namespace msprobe {
namespace {

constexpr int64_t kMostExperts = 4096;

RoleStyle StyleOf(const Checkpoint& c, const std::vector<WeightName>& names) {
  RoleStyle style;
  bool encoder = false, decoder = false;
  int64_t fc1_rows = 0, fc2_columns = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const WeightName& n = names[i];
    const std::vector<int64_t>& shape = c.tensors[i].shape;
    if (n.layer >= 0) {
      encoder |= n.stack == "encoder";
      decoder |= n.stack == "decoder";
    }
    style.has_w3 |= n.leaf == "w3";
    if (shape.size() != 2 || n.param != "weight") continue;
    if (n.leaf == "c_fc") style.conv1d |= shape[1] > shape[0];
    if (n.leaf == "c_attn") style.conv1d |= shape[1] == 3 * shape[0];
    if (n.leaf == "linear_fc1" || n.leaf == "dense_h_to_4h") fc1_rows = shape[0];
    if (n.leaf == "linear_fc2" || n.leaf == "dense_4h_to_h") fc2_columns = shape[1];
  }
  style.two_stacks = encoder && decoder;
  style.gated = fc1_rows > 0 && (c.facts.gated ? *c.facts.gated : fc1_rows == 2 * fc2_columns);
  return style;
}

struct Fused {
  std::string part;
  std::vector<IndexRange> rows;
};

/// Rows of q, k and v in a tensor of `rows`; empty where the heads are not known.
std::vector<Fused> QkvRows(const ModelFacts& facts, const std::string& leaf, int64_t rows, bool thirds) {
  std::vector<Fused> out{{"q", {}}, {"k", {}}, {"v", {}}};
  const int64_t heads = facts.heads;
  const int64_t groups = facts.groups > 0 ? facts.groups : heads;
  const int64_t size = facts.head_dim > 0 ? facts.head_dim : heads > 0 ? facts.hidden / heads : 0;
  const bool interleaved = leaf == "linear_qkv" || leaf == "query_key_value";
  const bool known = groups > 0 && size > 0 && heads % groups == 0 && (heads + 2 * groups) * size == rows;
  if (interleaved) {
    if (!known) return {};
    const int64_t q = heads / groups * size, group = q + 2 * size;
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t at = g * group;
      out[0].rows.push_back({at, at + q});
      out[1].rows.push_back({at + q, at + q + size});
      out[2].rows.push_back({at + q + size, at + group});
    }
    return out;
  }
  if (!known && (!thirds || rows % 3 != 0)) return {};
  const int64_t q = known ? heads * size : rows / 3, k = known ? groups * size : rows / 3;
  out[0].rows = {{0, q}};
  out[1].rows = {{q, q + k}};
  out[2].rows = {{q + k, q + 2 * k}};
  return out;
}

/// Rows of k and v in a tensor that holds no q.
std::vector<Fused> KvRows(const ModelFacts& facts, const std::string& leaf, int64_t rows) {
  if (rows % 2 != 0) return {};
  const int64_t groups = facts.groups > 0 ? facts.groups : facts.heads;
  const bool interleaved = leaf == "linear_kv";
  if (interleaved && (groups <= 0 || rows % (2 * groups) != 0)) return {};
  const int64_t pieces = interleaved ? groups : 1, half = rows / (2 * pieces);
  std::vector<Fused> out{{"k", {}}, {"v", {}}};
  for (int64_t g = 0; g < pieces; ++g) {
    const int64_t at = g * 2 * half;
    out[0].rows.push_back({at, at + half});
    out[1].rows.push_back({at + half, at + 2 * half});
  }
  return out;
}

class RoleMaker {
 public:
  RoleMaker(const ModelFacts& facts, const RoleStyle& style, std::vector<RoleTensor>* out)
      : facts_(facts), style_(style), out_(out) {}

  void Add(const WeightName& name, const WeightTensor& tensor, size_t source, int64_t first_expert) {
    source_ = source;
    WeightTensor t = tensor;
    if (name.what.empty()) return Put(Prefix(name) + name.rest, name.kernel ? Transposed(std::move(t)) : t);
    const bool experts = t.shape.size() == 3 && name.what.starts_with("mlp.") && name.expert < 0;
    if (experts && t.shape[0] <= kMostExperts) {
      for (int64_t i = 0; i < t.shape[0]; ++i) {
        WeightName one = name;
        one.expert = first_expert + i;
        AddOne(one, SelectFirst(t, i, fmt::format("expert {}", first_expert + i)));
      }
      return;
    }
    if (name.kernel || (style_.conv1d && name.layer >= 0)) t = Transposed(std::move(t));
    AddOne(name, Squeezed(std::move(t)));
  }

 private:
  std::string Prefix(const WeightName& name) const {
    if (name.what.empty()) return "other ";
    std::string out = style_.two_stacks && !name.stack.empty() ? name.stack + " " : "";
    if (name.layer >= 0) out += fmt::format("layer {} ", name.layer);
    if (name.shared) out += "shared ";
    if (name.expert >= 0) out += fmt::format("expert {} ", name.expert);
    return out;
  }

  void Put(const std::string& role, WeightTensor t, bool norm = false, bool table = false) {
    out_->push_back({role, std::move(t), norm, table, source_});
  }

  void AddOne(const WeightName& name, const WeightTensor& t) {
    const std::string prefix = Prefix(name);
    std::string what = name.what;
    if (what == "mlp.gate" && name.leaf == "w1" && !style_.has_w3) what = "mlp.up";
    const bool fused_fc1 = what == "mlp.up" && style_.gated;
    if ((what == "mlp.gate_up" || fused_fc1) && !t.shape.empty() && t.shape[0] % 2 == 0) {
      const int64_t half = t.shape[0] / 2;
      Put(prefix + "mlp.gate " + name.param, SelectRanges(t, 0, {{0, half}}, "gate"));
      return Put(prefix + "mlp.up " + name.param, SelectRanges(t, 0, {{half, 2 * half}}, "up"));
    }
    const std::string fused_what = what.substr(what.find('.') + 1);
    if ((fused_what == "qkv" || fused_what == "kv") && !t.shape.empty()) {
      const std::vector<Fused> parts = fused_what == "kv" ? KvRows(facts_, name.leaf, t.shape[0])
                                                          : QkvRows(facts_, name.leaf, t.shape[0], style_.thirds);
      const std::string block = what.substr(0, what.find('.'));
      for (const Fused& fused : parts) {
        Put(fmt::format("{}{}.{} {}", prefix, block, fused.part, name.param),
            SelectRanges(t, 0, fused.rows, fused.part));
      }
      if (!parts.empty()) return;
    }
    const bool norm = what.find("norm") != std::string::npos && name.param == "weight";
    Put(prefix + what + " " + name.param, t, norm, what == "embed" || what == "head");
  }

  const ModelFacts& facts_;
  const RoleStyle& style_;
  std::vector<RoleTensor>* out_;
  size_t source_ = 0;
};

/// Layers of multi-token prediction get the numbers behind the others, as Hugging Face has them.
std::vector<WeightName> NamesOf(const Checkpoint& checkpoint) {
  std::vector<WeightName> names;
  int64_t layers = 0;
  for (const WeightTensor& t : checkpoint.tensors) {
    const WeightName& name = names.emplace_back(ParseWeightName(t.name));
    if (!name.mtp) layers = std::max(layers, name.layer + 1);
  }
  for (WeightName& name : names) {
    if (name.mtp && name.layer >= 0) name.layer += layers;
  }
  return names;
}

/// What one of `shards` ranks of tensor parallelism holds; each has at least one group.
ModelFacts FactsOfShard(ModelFacts facts, int64_t shards) {
  if (shards <= 1 || facts.heads <= 0 || facts.heads % shards != 0) return facts;
  if (facts.head_dim == 0) facts.head_dim = facts.hidden / facts.heads;
  facts.groups = std::max<int64_t>(1, (facts.groups > 0 ? facts.groups : facts.heads) / shards);
  facts.heads /= shards;
  return facts;
}

}  // namespace

RolePlan::RolePlan(const Checkpoint& checkpoint, bool guess)
    : checkpoint_(checkpoint),
      names_(NamesOf(checkpoint)),
      first_expert_(names_.size(), 0),
      style_(StyleOf(checkpoint, names_)) {
  style_.thirds = guess;
}

void RolePlan::AddParts(const WeightTensor& t, size_t source, int64_t shards, std::vector<RoleTensor>* out) const {
  const ModelFacts facts = FactsOfShard(checkpoint_.facts, shards);
  WeightName name = names_[source];
  if (name.expert >= 0) name.expert += first_expert_[source];
  RoleMaker(facts, style_, out).Add(name, t, source, first_expert_[source]);
}

std::vector<RoleTensor> RolesOf(const Checkpoint& checkpoint) {
  const RolePlan plan(checkpoint);
  std::vector<RoleTensor> out;
  for (size_t i = 0; i < checkpoint.tensors.size(); ++i) plan.AddParts(checkpoint.tensors[i], i, 1, &out);
  return out;
}

std::string PartAt(const Checkpoint& checkpoint, size_t source, const std::vector<int64_t>& place) {
  std::vector<RoleTensor> parts;
  RolePlan(checkpoint).AddParts(checkpoint.tensors[source], source, 1, &parts);
  for (const RoleTensor& part : parts) {
    for (const WeightBlock& block : part.tensor.blocks) {
      if (block.origin.size() != place.size()) continue;
      const size_t lost = place.size() - block.size.size();
      bool inside = true;
      for (size_t d = 0; d < place.size(); ++d) {
        const size_t own = part.tensor.transposed ? place.size() - 1 - d : d;
        const int64_t length = d < lost ? 1 : block.size[own - lost];
        inside = inside && place[d] >= block.origin[own] && place[d] < block.origin[own] + length;
      }
      if (inside) return part.tensor.part;
    }
  }
  return {};
}

}  // namespace msprobe
