// The distributed optimizer in checkpoints of torch.distributed, where it is kept as each rank has it.
#include <algorithm>
#include <optional>
#include <set>

#include "base/message.h"
#include "base/text.h"
#include "weights/distributed_optimizer.h"
#include "weights/megatron_names.h"
#include "weights/readers.h"

namespace msprobe {
namespace {

constexpr std::string_view kGroup = "dp_group_idx_", kBuffer = "gbuf_idx_", kBucket = "bucket_idx_";

/// The number behind `word`, and where it ends.
std::optional<int64_t> NumberBehind(const std::string& name, std::string_view word, size_t* end) {
  constexpr size_t kMostDigits = 6;
  const size_t at = name.find(word);
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = at + word.size();
  *end = std::min(name.find_first_not_of("0123456789", begin), name.size());
  if (*end == begin || *end - begin > kMostDigits) return std::nullopt;
  return std::stoll(name.substr(begin, *end - begin));
}

/// By buffer, key of the state, and bucket.
using Buckets = std::map<int64_t, std::map<std::string, std::map<int64_t, WeightTensor>>>;

/// A weight as one rank has it: ranges of dimension `dim` of the whole one, or all of it.
struct LocalWeight {
  size_t whole = 0;
  size_t dim = 0;
  std::vector<IndexRange> ranges;  // empty: a copy
};

class BucketCutter {
 public:
  explicit BucketCutter(Checkpoint* out) : out_(out) {}

  bool Run(const std::map<int64_t, std::vector<FlatStates>>& of_ranks) {
    const int64_t tp = out_->facts.tensor_parallel, pp = out_->facts.pipeline_parallel;
    if (static_cast<int64_t>(of_ranks.size()) != tp * pp || of_ranks.begin()->second.empty()) return false;
    SortWeights();
    const auto chunks = static_cast<int64_t>(of_ranks.begin()->second.size());
    if (layers_ % (pp * chunks) != 0) return false;
    for (const auto& [group, buffers] : of_ranks) {  // tensor parallelism counts first
      if (group >= tp * pp || static_cast<int64_t>(buffers.size()) != chunks) return false;
      if (!CutRank(group % tp, group / tp, buffers)) return false;
    }
    for (const auto& [name, t] : states_) {
      if (!IsCovered(t)) return false;
    }
    for (auto& [name, t] : states_) out_->optimizer.push_back(std::move(t));
    return true;
  }

 private:
  /// Weights before the layers, in a layer, and behind them, in the order of the checkpoint.
  void SortWeights() {
    size_t end = 0;
    for (size_t i = 0; i < out_->tensors.size(); ++i) {
      const std::string& name = out_->tensors[i].name;
      by_name_.emplace(name, i);
      const auto layer = NumberBehind(name, "layers.", &end);
      if (!layer || name.starts_with("mtp.")) {
        (layers_ == 0 ? before_ : behind_).push_back(i);
        continue;
      }
      layers_ = std::max(layers_, *layer + 1);
      const std::string tail = name.substr(end);
      if (std::find(in_layer_.begin(), in_layer_.end(), tail) == in_layer_.end()) in_layer_.push_back(tail);
    }
    // Each expert has its weights together; in the checkpoint one weight of all experts is.
    const auto expert = [](const std::string& tail) {
      size_t behind = 0;
      return NumberBehind(tail, "local_experts.", &behind).value_or(-1);
    };
    const auto is_expert = [&](const std::string& tail) { return expert(tail) >= 0; };
    const auto first = std::find_if(in_layer_.begin(), in_layer_.end(), is_expert);
    const auto last = std::stable_partition(first, in_layer_.end(), is_expert);
    std::stable_sort(first, last, [&](const std::string& a, const std::string& b) { return expert(a) < expert(b); });
  }

  std::vector<size_t> ChunkWeights(int64_t first, int64_t count) const {
    std::vector<size_t> out;
    if (first == 0) out = before_;
    for (int64_t layer = first; layer < first + count; ++layer) {
      for (const std::string& tail : in_layer_) {
        const auto found = by_name_.find("decoder.layers." + std::to_string(layer) + tail);
        if (found != by_name_.end()) out.push_back(found->second);
      }
    }
    if (first + count != layers_) return out;
    out.insert(out.end(), behind_.begin(), behind_.end());
    // The last stage of a model with one table has a copy of it, which is not stored apart.
    const bool head = by_name_.contains("output_layer.weight"), tied = out_->facts.tied.value_or(false);
    const auto table = by_name_.find("embedding.word_embeddings.weight");
    if (!head && tied && first > 0 && table != by_name_.end()) out.push_back(table->second);
    return out;
  }

  /// fc1 of a gated layer is twice as long as fc2 is wide.
  bool Gated(const std::string& name, const WeightTensor& t) const {
    const size_t at = name.rfind("linear_fc1.");
    if (at == std::string::npos) return false;
    if (out_->facts.gated) return *out_->facts.gated;
    const auto fc2 = by_name_.find(name.substr(0, at) + "linear_fc2.weight");
    return fc2 != by_name_.end() && out_->tensors[fc2->second].shape.size() == 2 &&
           t.shape[0] == 2 * out_->tensors[fc2->second].shape[1];
  }

  bool Localize(size_t whole, int64_t rank, LocalWeight* local, WeightTensor* out) const {
    const WeightTensor& t = out_->tensors[whole];
    const int64_t tp = out_->facts.tensor_parallel;
    local->whole = whole;
    *out = t;
    const TensorSplit split = SplitOf(t.name);
    if (tp == 1 || split == TensorSplit::kCopies) return true;
    local->dim = split == TensorSplit::kColumns ? 1 : 0;
    if (t.shape.size() <= local->dim) return false;
    const int64_t pieces = Gated(t.name, t) ? 2 : 1, size = t.shape[local->dim];
    if (size % (pieces * tp) != 0) return false;
    const int64_t each = size / pieces, share = each / tp;
    for (int64_t piece = 0; piece < pieces; ++piece)
      local->ranges.emplace_back(piece * each + rank * share, piece * each + (rank + 1) * share);
    *out = SelectRanges(t, local->dim, local->ranges, "");
    return true;
  }

  bool CutRank(int64_t t, int64_t p, const std::vector<FlatStates>& buffers) {
    const int64_t pp = out_->facts.pipeline_parallel, chunks = static_cast<int64_t>(buffers.size());
    const int64_t each = layers_ / (pp * chunks);
    std::vector<std::vector<WeightTensor>> model;
    std::map<std::string, LocalWeight> places;
    for (int64_t v = 0; v < chunks; ++v) {
      std::vector<WeightTensor>& chunk = model.emplace_back();
      for (const size_t whole : ChunkWeights((v * pp + p) * each, each)) {
        LocalWeight local;
        if (!Localize(whole, t, &local, &chunk.emplace_back())) return false;
        places[out_->tensors[whole].name] = local;
      }
    }
    std::vector<std::vector<WeightTensor>> cut;
    if (!CutFlatStates(buffers, model, &cut)) return false;
    for (const auto& chunk : cut) {
      for (const WeightTensor& state : chunk) {
        const auto place = places.find(state.name.substr(state.name.find('.') + 1));
        if (place == places.end()) return false;
        Merge(state, place->second);
      }
    }
    return true;
  }

  void Merge(const WeightTensor& state, const LocalWeight& local) {
    WeightTensor& whole = states_[state.name];
    const bool copy = local.ranges.empty() && !whole.blocks.empty();
    if (copy) return;
    whole.name = state.name;
    whole.dtype = state.dtype;
    whole.shape = out_->tensors[local.whole].shape;
    if (local.ranges.empty()) {
      whole.blocks = state.blocks;
      return;
    }
    int64_t at = 0;  // of the range in the rank's own weight
    for (const auto& [first, last] : local.ranges) {
      WeightTensor piece = SelectRanges(state, local.dim, {{at, at + last - first}}, "");
      for (WeightBlock& b : piece.blocks) {
        b.begin[local.dim] += first;
        b.origin = b.begin;
        whole.blocks.push_back(std::move(b));
      }
      at += last - first;
    }
  }

  Checkpoint* out_;
  int64_t layers_ = 0;
  std::map<std::string, size_t> by_name_;
  std::vector<size_t> before_, behind_;
  std::vector<std::string> in_layer_;
  std::map<std::string, WeightTensor> states_;
};

/// Buckets one behind the other, as the file of a rank has them.
bool JoinBuckets(const Buckets& buckets, std::vector<FlatStates>* out) {
  for (const auto& [buffer, keys] : buckets) {
    FlatStates& flat = out->emplace_back();
    for (const auto& [key, parts] : keys) {
      std::vector<WeightTensor> in_order;
      for (const auto& [number, t] : parts) in_order.push_back(t);
      auto joined = JoinAlong(0, in_order);
      if (!joined.ok() || joined->shape.size() != 1) return false;
      flat.emplace_back(key, std::move(*joined));
    }
  }
  return true;
}

}  // namespace

void CutBuckets(const StateObjects& objects, Checkpoint* out) {
  std::map<int64_t, Buckets> groups;
  std::map<int64_t, std::vector<FlatStates>> of_ranks;
  std::vector<WeightTensor> others;
  size_t end = 0;
  for (const WeightTensor& t : out->optimizer) {
    const auto group = NumberBehind(t.name, kGroup, &end), buffer = NumberBehind(t.name, kBuffer, &end);
    const auto bucket = NumberBehind(t.name, kBucket, &end);
    if (group && buffer && bucket && end < t.name.size()) {
      groups[*group][*buffer][t.name.substr(end + 1)][*bucket] = t;
    } else {
      others.push_back(t);
    }
  }
  for (const auto& [name, object] : objects) {
    const auto group = NumberBehind(name, kGroup, &end);
    if (group) of_ranks[*group] = FlatStatesOf(*object.first, object.second);
  }
  if (groups.empty() && of_ranks.empty()) return;
  bool known = groups.empty() || of_ranks.empty();
  for (const auto& [group, buckets] : groups) known = known && JoinBuckets(buckets, &of_ranks[group]);
  const std::vector<WeightTensor> all = std::move(out->optimizer);
  out->optimizer = std::move(others);
  if (known && BucketCutter(out).Run(of_ranks)) return;
  out->optimizer = all;
  out->notes.push_back(
      Msg("the states of the distributed optimizer are not cut into those of the weights: they do not hold the weights "
          "of the ranks in the order that is known"));
}

}  // namespace msprobe
