// DeepSpeed: the fp32 partitions of ZeRO, stages 1 to 3, put together to whole tensors; they are what training goes on
// with, and the 16-bit weights beside them are copies of them.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/message.h"
#include "base/text.h"
#include "weights/readers.h"

namespace msprobe {
namespace {

constexpr std::string_view kStates = "_optim_states.pt", kModel = "_model_states.pt";

struct ZeroFile {
  int file = 0;
  const PtValue* value = nullptr;
};

struct ZeroRanks {
  std::vector<ZeroFile> states, models;  // by rank
};

/// "zero_pp_rank_12_mp_rank_00_..." is rank 12; others are in the order of their names.
int64_t RankOf(std::string_view name) {
  constexpr std::string_view kRank = "pp_rank_";
  const size_t at = name.find(kRank);
  int64_t rank = 0;
  for (size_t i = at + kRank.size();
       at != std::string_view::npos && i < name.size() && name[i] >= '0' && name[i] <= '9' && rank < 1'000'000; ++i)
    rank = rank * 10 + (name[i] - '0');
  return rank;
}

Status OpenRanks(const std::string& directory, std::string_view ending, Checkpoint* out, std::vector<ZeroFile>* to) {
  MSP_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(directory));
  std::erase_if(names, [&](const std::string& name) { return !name.ends_with(ending); });
  std::stable_sort(names.begin(), names.end(), [](auto& a, auto& b) { return RankOf(a) < RankOf(b); });
  for (const std::string& name : names) {
    MSP_ASSIGN_OR_RETURN(const int file, out->AddFile(JoinPath(directory, name)));
    MSP_ASSIGN_OR_RETURN(const PtValue* value, OpenTorch(file, out));
    to->push_back({file, value});
  }
  return OkStatus();
}

/// The tensors of a list, or of a list of lists, in order.
void FlatTensors(const PtValue& value, std::vector<const PtTensor*>* out) {
  if (value.kind == PtValue::Kind::kTensor) out->push_back(value.tensor.get());
  for (const PtValue& item : value.items) FlatTensors(item, out);
}

struct NamedShape {
  std::string name;
  std::vector<int64_t> shape;
  int64_t count = 0;
};

/// Groups of parameters with their shapes, in the order in which they lie in the partitions.
bool ReadShapes(const PtValue& value, std::vector<std::vector<NamedShape>>* out) {
  if (value.kind == PtValue::Kind::kList) {
    return std::all_of(value.items.begin(), value.items.end(), [&](auto& item) { return ReadShapes(item, out); });
  }
  if (value.kind != PtValue::Kind::kDict) return false;
  out->emplace_back();
  for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
    NamedShape named;
    named.name = value.items[i].text;
    for (const PtValue& n : value.items[i + 1].items) named.shape.push_back(n.i);
    if (!CountElements(named.shape, &named.count)) return false;
    out->back().push_back(std::move(named));
  }
  return true;
}

struct Partition {
  const PtTensor* tensor;
  int file;
  int64_t size() const { return tensor->shape.size() == 1 ? tensor->shape[0] : 0; }
};

/// Elements [begin, begin + count) of partitions that lie one behind the other.
bool AddStretch(const std::vector<Partition>& parts, int64_t begin, int64_t count, WeightTensor* t) {
  int64_t at = 0, done = 0;
  for (const Partition& p : parts) {
    const int64_t first = std::max(begin, at), last = std::min(begin + count, at + p.size());
    if (first < last) {
      const auto* data =
          static_cast<const char*>(p.tensor->data) + static_cast<size_t>(first - at) * ElementSize(t->dtype);
      if (p.tensor->dtype != t->dtype || !AddFlat(done, last - first, data, p.file, t)) return false;
      done += last - first;
    }
    at += p.size();
  }
  return done == count;
}

Status Unfit(const std::string& directory, const std::string& name) {
  return BadInput(
      Msg("the partitions in {} do not hold all of {}: copy the files of all ranks", directory, OneLine(name)));
}

/// Stages 1 and 2: each rank has one stretch of the parameters of a group.
Status JoinGroups(const std::string& directory, const std::vector<std::vector<NamedShape>>& groups,
                  const ZeroRanks& ranks, Checkpoint* out) {
  std::vector<std::vector<Partition>> parts(groups.size());
  for (const ZeroFile& rank : ranks.states) {
    const PtValue* state = PtMember(*rank.value, "optimizer_state_dict");
    const PtValue* flat = state ? PtMember(*state, "single_partition_of_fp32_groups") : nullptr;
    std::vector<const PtTensor*> tensors;
    if (flat) FlatTensors(*flat, &tensors);
    if (tensors.size() != groups.size()) return Unfit(directory, "a group of parameters");
    for (size_t g = 0; g < groups.size(); ++g) parts[g].push_back({tensors[g], rank.file});
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    int64_t at = 0;
    for (const NamedShape& named : groups[g]) {
      WeightTensor t;
      t.name = named.name;
      t.shape = named.shape;
      t.dtype = parts[g].empty() ? DType::kFloat32 : parts[g][0].tensor->dtype;
      if (!AddStretch(parts[g], at, named.count, &t)) return Unfit(directory, named.name);
      at += named.count;
      out->tensors.push_back(std::move(t));
    }
  }
  return OkStatus();
}

/// Stage 3: each rank has its share of every parameter.
Status JoinShares(const std::string& directory, const std::vector<std::vector<NamedShape>>& groups,
                  const ZeroRanks& ranks, Checkpoint* out) {
  std::vector<std::vector<Partition>> of_rank;
  for (const ZeroFile& rank : ranks.states) {
    const PtValue* state = PtMember(*rank.value, "optimizer_state_dict");
    const PtValue* flat = state ? PtMember(*state, "fp32_flat_groups") : nullptr;
    std::vector<const PtTensor*> tensors;
    if (flat) FlatTensors(*flat, &tensors);
    of_rank.emplace_back();
    for (const PtTensor* t : tensors) of_rank.back().push_back({t, rank.file});
  }
  const auto world = static_cast<int64_t>(of_rank.size());
  int64_t at = 0;
  for (const auto& group : groups) {
    for (const NamedShape& named : group) {
      const int64_t share = (named.count + world - 1) / world;
      WeightTensor t;
      t.name = named.name;
      t.shape = named.shape;
      t.dtype = of_rank[0].empty() ? DType::kFloat32 : of_rank[0][0].tensor->dtype;
      int64_t done = 0;
      for (const auto& parts : of_rank) {
        WeightTensor piece;  // of one dimension: where the elements lie
        const int64_t count = std::min(share, named.count - done);
        piece.dtype = t.dtype;
        piece.shape = {count};
        if (count <= 0) break;
        if (!AddStretch(parts, at, count, &piece)) return Unfit(directory, named.name);
        for (const WeightBlock& b : piece.blocks) {
          if (!AddFlat(done + b.begin[0], b.size[0], b.data, b.file, &t)) return Unfit(directory, named.name);
        }
        done += count;
      }
      if (done != named.count) return Unfit(directory, named.name);
      at += share;
      out->tensors.push_back(std::move(t));
    }
  }
  return OkStatus();
}

/// The moments, as each rank holds them.
void ListRankStates(const ZeroRanks& ranks, Checkpoint* out) {
  for (size_t r = 0; r < ranks.states.size(); ++r) {
    const PtValue* state = PtMember(*ranks.states[r].value, "optimizer_state_dict");
    const PtValue* base = state ? PtMember(*state, "base_optimizer_state") : nullptr;
    if (!base && state) base = PtMember(*state, "optimizer_state_dict");
    if (base) ListStates(*base, fmt::format("optimizer.rank{}", r), ranks.states[r].file, out);
  }
}

}  // namespace

bool IsZero(const std::string& directory) {
  const auto names = ListDirectory(directory);
  return names.ok() && std::any_of(names->begin(), names->end(), [](const std::string& name) {
           return name.ends_with(kModel) || name.ends_with(kStates);
         });
}

Status ReadZero(const std::string& directory, Checkpoint* out) {
  out->format = "DeepSpeed";
  ZeroRanks ranks;
  MSP_RETURN_IF_ERROR(OpenRanks(directory, kModel, out, &ranks.models));
  MSP_RETURN_IF_ERROR(OpenRanks(directory, kStates, out, &ranks.states));
  if (ranks.models.empty()) return BadInput(Msg("{} has no file *_model_states.pt: copy all files", directory));
  const PtValue& first = *ranks.models[0].value;
  const PtValue* module = PtMember(first, "module");
  const PtValue* shapes = PtMember(first, "param_shapes");
  const PtValue* state = ranks.states.empty() ? nullptr : PtMember(*ranks.states[0].value, "optimizer_state_dict");
  const bool stage3 = state && PtMember(*state, "fp32_flat_groups");
  const bool stage2 = state && PtMember(*state, "single_partition_of_fp32_groups");
  std::vector<WeightTensor> copies;
  if (module) MSP_RETURN_IF_ERROR(ListTensors(*module, "", ranks.models[0].file, out, &copies));
  if (!shapes || !(stage2 || stage3)) {
    out->tensors = std::move(copies);
    return OkStatus();
  }
  std::vector<std::vector<NamedShape>> groups;
  if (!ReadShapes(*shapes, &groups))
    return BadInput(Msg("{} has damaged param_shapes: save the checkpoint again", directory));
  MSP_RETURN_IF_ERROR(stage3 ? JoinShares(directory, groups, ranks, out) : JoinGroups(directory, groups, ranks, out));
  out->format = fmt::format("DeepSpeed ZeRO-{}, {} ranks", stage3 ? "3" : "1/2", ranks.states.size());
  // Buffers and parameters that do not train are in the model's file alone.
  const size_t trained = out->tensors.size();
  for (WeightTensor& t : copies) {
    const auto same = [&](const WeightTensor& o) { return o.name == t.name; };
    const auto end = out->tensors.begin() + static_cast<int64_t>(trained);
    if (t.elements() > 0 && std::find_if(out->tensors.begin(), end, same) == end) out->tensors.push_back(std::move(t));
  }
  ListRankStates(ranks, out);
  return OkStatus();
}

}  // namespace msprobe
