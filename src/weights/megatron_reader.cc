// Megatron and MindSpeed: a file for each rank of tensor, pipeline and expert parallelism, put together to one model.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/message.h"
#include "base/text.h"
#include "weights/distributed_optimizer.h"
#include "weights/megatron_names.h"
#include "weights/readers.h"

namespace msprobe {
namespace {

constexpr std::string_view kRankStart = "mp_rank_", kTracker = "latest_checkpointed_iteration.txt";
constexpr std::array<std::string_view, 3> kModelFiles{"model_optim_rng.pt", "model_rng.pt", "model_states.pt"};

struct MegatronRank {
  std::string directory;  // its name
  int64_t tp = 0, pp = 0, ep = 0;
  std::vector<int64_t> numbers;
  int file = 0;
  const PtValue* value = nullptr;
  std::vector<std::vector<WeightTensor>> weights;  // of each chunk
  std::vector<std::vector<WeightTensor>> states;   // of the distributed optimizer, by the chunk of their weights
};

bool ParseRank(std::string_view name, MegatronRank* out) {
  if (!name.starts_with(kRankStart)) return false;
  out->directory = name;
  constexpr size_t kMostDigits = 6;
  for (const std::string_view number : Split(name.substr(kRankStart.size()), '_')) {
    if (!IsDigits(number) || number.size() > kMostDigits) return false;
    out->numbers.push_back(std::stoll(std::string(number)));
  }
  return out->numbers.size() <= 3;
}

std::string ModelFile(const std::string& directory) {
  for (const std::string_view name : kModelFiles) {
    if (std::string path = JoinPath(directory, name); IsRegularFile(path)) return path;
  }
  return {};
}

/// One tensor as the ranks of tensor parallelism hold it, in their order.
using ByRank = std::vector<WeightTensor>;
/// A stage of the pipeline: in the order of the first rank's file.
struct MegatronChunk {
  std::vector<std::string> names;
  std::map<std::string, ByRank> tensors;
  int64_t layers = 0;
};

/// Where the digits behind `word` stand in `name`; npos without any.
size_t NumberAfter(const std::string& name, std::string_view word, size_t* length) {
  // Layers of multi-token prediction are counted apart on whatever stage.
  const size_t at = word == "layers." && name.starts_with("mtp.") ? std::string::npos : name.find(word);
  if (at == std::string::npos) return at;
  const size_t begin = at + word.size(), end = std::min(name.find_first_not_of("0123456789", begin), name.size());
  *length = end - begin;
  constexpr size_t kMostDigits = 6;
  return *length > 0 && *length <= kMostDigits ? begin : std::string::npos;
}

std::string AddToNumber(const std::string& name, std::string_view word, int64_t add) {
  size_t length = 0;
  const size_t at = NumberAfter(name, word, &length);
  if (at == std::string::npos) return name;
  return name.substr(0, at) + std::to_string(std::stoll(name.substr(at, length)) + add) + name.substr(at + length);
}

constexpr std::string_view kLayers = "layers.", kExperts = "experts.local_experts.";

class MegatronReader {
 public:
  MegatronReader(std::string directory, Checkpoint* out) : directory_(std::move(directory)), out_(out) {}

  Status Read() {
    MSP_RETURN_IF_ERROR(OpenRanks());
    MSP_RETURN_IF_ERROR(CheckRanks());
    for (MegatronRank& rank : ranks_) MSP_RETURN_IF_ERROR(ReadChunks(&rank));
    ReadDistributedOptimizer();
    const auto chunks = static_cast<int64_t>(ChunkKeys().size());
    for (int64_t ep = 0; ep < ep_; ++ep) {
      int64_t layers = 0;
      for (int64_t v = 0; v < chunks; ++v) {
        for (int64_t pp = 0; pp < pp_; ++pp) {
          MegatronChunk chunk;
          CollectChunk(ep, pp, v, &chunk);
          MSP_RETURN_IF_ERROR(AddChunk(chunk, layers, ep));
          MegatronChunk states;
          CollectStates(ep, pp, v, &states);
          MSP_RETURN_IF_ERROR(AddStates(states, layers, ep));
          layers += chunk.layers;
        }
      }
    }
    for (const MegatronRank& rank : ranks_) {
      const PtValue* states = PtMember(*rank.value, "optimizer");
      if (states) ListStates(*states, rank.directory + ".optimizer", rank.file, out_);
    }
    out_->format = fmt::format("Megatron, TP {} PP {}", tp_, pp_);
    if (ep_ > 1) out_->format += fmt::format(" EP {}", ep_);
    if (chunks > 1) out_->format += fmt::format(" VPP {}", chunks);
    return OkStatus();
  }

 private:
  Status OpenRanks() {
    MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory_));
    for (const std::string& name : names) {
      MegatronRank rank;
      if (!ParseRank(name, &rank)) continue;
      const std::string path = ModelFile(JoinPath(directory_, name));
      if (path.empty()) {
        return BadInput(Msg("{} has no model_optim_rng.pt: copy the files of all ranks", JoinPath(directory_, name)));
      }
      MSP_ASSIGN_OR_RETURN(rank.file, out_->AddFile(path));
      MSP_ASSIGN_OR_RETURN(rank.value, OpenTorch(rank.file, out_));
      ranks_.push_back(std::move(rank));
    }
    if (ranks_.empty()) return BadInput(Msg("{} has no directory mp_rank_*: give that of an iteration", directory_));
    return OkStatus();
  }

  /// Numbers of ranks mean what the arguments say; without them, the second is the stage of the pipeline.
  Status CheckRanks() {
    const PtValue* args = PtMember(*ranks_[0].value, "args");
    TakeArguments(args, ranks_[0].file, out_);
    const ModelFacts& facts = out_->facts;
    const bool experts_second = args && facts.pipeline_parallel == 1 && facts.expert_parallel > 1;
    std::set<std::array<int64_t, 3>> seen;
    for (MegatronRank& rank : ranks_) {
      rank.tp = rank.numbers[0];
      if (rank.numbers.size() > 1) (experts_second ? rank.ep : rank.pp) = rank.numbers[1];
      if (rank.numbers.size() > 2) rank.ep = rank.numbers[2];
      tp_ = std::max(tp_, rank.tp + 1);
      pp_ = std::max(pp_, rank.pp + 1);
      ep_ = std::max(ep_, rank.ep + 1);
      seen.insert({rank.tp, rank.pp, rank.ep});
    }
    if (args) {
      tp_ = std::max(tp_, facts.tensor_parallel);
      pp_ = std::max(pp_, facts.pipeline_parallel);
      ep_ = std::max(ep_, facts.expert_parallel);
    }
    if (static_cast<int64_t>(seen.size()) != tp_ * pp_ * ep_ || seen.size() != ranks_.size()) {
      return BadInput(Msg("{} holds {} ranks, and TP {} x PP {} x EP {} need {}: copy the files of all ranks",
                          directory_, ranks_.size(), tp_, pp_, ep_, tp_ * pp_ * ep_));
    }
    std::sort(ranks_.begin(), ranks_.end(), [](auto& a, auto& b) { return a.tp < b.tp; });
    return OkStatus();
  }

  std::vector<std::string> ChunkKeys() const {
    const PtValue& first = *ranks_[0].value;
    std::vector<std::string> keys;
    if (PtMember(first, "model")) return {"model"};
    while (PtMember(first, fmt::format("model{}", keys.size()))) keys.push_back(fmt::format("model{}", keys.size()));
    return keys;
  }

  /// The weights of a rank; all else is left out.
  Status ReadChunks(MegatronRank* rank) {
    const std::vector<std::string> keys = ChunkKeys();
    for (const std::string& key : keys) {
      std::vector<WeightTensor> tensors;
      const PtValue* model = PtMember(*rank->value, key);
      if (model) MSP_RETURN_IF_ERROR(ListTensors(*model, "", rank->file, out_, &tensors));
      std::erase_if(tensors, [](const WeightTensor& t) { return t.name.ends_with("_extra_state"); });
      const bool two_stacks = HasTwoStacks(tensors);
      for (WeightTensor& t : tensors) t.name = McoreName(std::move(t.name), two_stacks);
      rank->weights.push_back(std::move(tensors));
    }
    const PtValue* dict = PtDict(*rank->value);
    for (size_t i = 0; dict && i + 1 < dict->items.size(); i += 2) {
      const std::string key(dict->items[i].text);
      const bool known = key == "args" || key == "optimizer" || dict->items[i + 1].items.empty();
      if (!known && std::find(keys.begin(), keys.end(), key) == keys.end()) out_->left_out.insert(key);
    }
    return OkStatus();
  }

  static void AddToChunk(WeightTensor t, MegatronChunk* out) {
    size_t length = 0;
    if (const size_t at = NumberAfter(t.name, kLayers, &length); at != std::string::npos)
      out->layers = std::max<int64_t>(out->layers, std::stoll(t.name.substr(at, length)) + 1);
    const auto [found, fresh] = out->tensors.try_emplace(t.name);
    if (fresh) out->names.push_back(t.name);
    found->second.push_back(std::move(t));
  }

  void CollectChunk(int64_t ep, int64_t pp, int64_t v, MegatronChunk* out) const {
    for (const MegatronRank& rank : ranks_) {
      if (rank.ep != ep || rank.pp != pp) continue;
      for (const WeightTensor& t : rank.weights[static_cast<size_t>(v)]) AddToChunk(t, out);
    }
  }

  void CollectStates(int64_t ep, int64_t pp, int64_t v, MegatronChunk* out) const {
    for (const MegatronRank& rank : ranks_) {
      if (rank.ep != ep || rank.pp != pp || rank.states.empty()) continue;
      for (const WeightTensor& t : rank.states[static_cast<size_t>(v)]) AddToChunk(t, out);
    }
  }

  /// What is not understood is left out with a note, on all ranks: half of the states would say nothing.
  void ReadDistributedOptimizer() {
    size_t files = 0, read = 0;
    for (MegatronRank& rank : ranks_) {
      const std::string path = JoinPath(JoinPath(directory_, rank.directory), "distrib_optim.pt");
      if (!IsRegularFile(path)) continue;
      ++files;
      if (CutStates(path, &rank)) ++read;
    }
    if (files == 0 || read == ranks_.size()) return;
    for (MegatronRank& rank : ranks_) rank.states.clear();
    out_->notes.push_back(
        Msg("the states of the distributed optimizer (distrib_optim.pt) are not read: {} of {} files hold the weights "
            "of their ranks in the order that is known",
            read, ranks_.size()));
  }

  bool CutStates(const std::string& path, MegatronRank* rank) {
    const auto file = out_->AddFile(path);
    if (!file.ok()) return false;
    const auto saved = OpenTorch(*file, out_);
    if (!saved.ok()) return false;
    return CutDistributedOptimizer(**saved, *file, rank->weights, &rank->states);
  }

  /// fc1 of a gated layer has two halves, so it is twice as long as fc2 is wide.
  bool Gated(const std::string& name, const ByRank& fc1, const MegatronChunk& chunk) const {
    if (out_->facts.gated) return *out_->facts.gated;
    std::string fc2 = name.substr(0, name.rfind("linear_fc1.")) + "linear_fc2.weight";
    const auto found = chunk.tensors.find(fc2);
    return found != chunk.tensors.end() && found->second[0].shape.size() == 2 && !fc1[0].shape.empty() &&
           fc1[0].shape[0] == 2 * found->second[0].shape[1];
  }

  StatusOr<WeightTensor> JoinRanks(const std::string& name, const ByRank& ranks, const MegatronChunk& chunk) {
    const TensorSplit split = SplitOf(name);
    if (ranks.size() == 1) return ranks[0];
    if (split == TensorSplit::kCopies) {
      for (size_t i = 1; i < ranks.size(); ++i) out_->copies.push_back(ranks[i]);
      return ranks[0];
    }
    if (split == TensorSplit::kColumns) return JoinAlong(1, ranks);
    const bool fc1 = name.find("linear_fc1.") != std::string::npos;
    if (!fc1 || !Gated(name, ranks, chunk)) return JoinAlong(0, ranks);
    std::vector<WeightTensor> halves;
    for (const int64_t half : {0, 1}) {
      for (const WeightTensor& t : ranks) {
        const int64_t rows = t.shape.empty() ? 0 : t.shape[0] / 2;
        if (rows == 0) return JoinAlong(0, ranks);
        halves.push_back(SelectRanges(t, 0, {{half * rows, half * rows + rows}}, ""));
        for (WeightBlock& b : halves.back().blocks) b.origin[0] -= half * rows;
      }
    }
    return JoinAlong(0, halves);
  }

  Status AddChunk(const MegatronChunk& chunk, int64_t layers_before, int64_t ep) {
    for (const std::string& name : chunk.names) {
      const ByRank& ranks = chunk.tensors.at(name);
      if (static_cast<int64_t>(ranks.size()) != tp_) {
        return BadInput(Msg("{}: {} of {} ranks of tensor parallelism hold {}: copy the files of all ranks", directory_,
                            ranks.size(), tp_, OneLine(name)));
      }
      const size_t copies = out_->copies.size();
      MSP_ASSIGN_OR_RETURN(WeightTensor t, JoinRanks(name, ranks, chunk));
      std::string whole = AddToNumber(name, kLayers, layers_before);
      if (ep_ > 1) whole = AddToNumber(whole, kExperts, ep * (out_->facts.experts / ep_));
      for (size_t i = copies; i < out_->copies.size(); ++i) out_->copies[i].name = whole;
      t.name = whole;
      const bool fresh = seen_.insert(whole).second;
      (fresh ? out_->tensors : out_->copies).push_back(std::move(t));
    }
    return OkStatus();
  }

  /// As AddChunk(), of the optimizer.
  Status AddStates(const MegatronChunk& chunk, int64_t layers_before, int64_t ep) {
    const size_t copies = out_->copies.size();
    for (const std::string& name : chunk.names) {
      if (static_cast<int64_t>(chunk.tensors.at(name).size()) != tp_) {
        out_->left_out.insert(name);
        continue;
      }
      MSP_ASSIGN_OR_RETURN(WeightTensor t, JoinRanks(name, chunk.tensors.at(name), chunk));
      t.name = AddToNumber(name, kLayers, layers_before);
      if (ep_ > 1) t.name = AddToNumber(t.name, kExperts, ep * (out_->facts.experts / ep_));
      if (seen_.insert(t.name).second) out_->optimizer.push_back(std::move(t));
    }
    out_->copies.resize(copies);  // of states
    return OkStatus();
  }

  std::string directory_;
  Checkpoint* out_;
  std::vector<MegatronRank> ranks_;
  int64_t tp_ = 1, pp_ = 1, ep_ = 1;
  std::set<std::string> seen_;
};

/// Only the first line of a tracker is of interest: the number of the iteration, or "release".
std::string TrackerText(const std::string& path) {
  constexpr size_t kMost = 64;
  const auto file = MappedFile::Open(path);
  if (!file.ok()) return {};
  std::string_view text = file->text().substr(0, kMost);
  text = text.substr(0, text.find_first_of("\r\n"));
  while (text.ends_with(' ')) text.remove_suffix(1);
  return std::string(text);
}

}  // namespace

bool IsMegatron(const std::string& directory) {
  const auto names = ListDirectory(directory);
  return names.ok() && std::any_of(names->begin(), names->end(), [&](const std::string& name) {
           return name.starts_with(kRankStart) && !ModelFile(JoinPath(directory, name)).empty();
         });
}

Status ReadMegatron(const std::string& directory, Checkpoint* out) { return MegatronReader(directory, out).Read(); }

StatusOr<std::string> LatestIteration(const std::string& directory) {
  // DeepSpeed names the last directory in "latest".
  const bool megatron = PathExists(JoinPath(directory, kTracker));
  const std::string tracker = JoinPath(directory, megatron ? kTracker : "latest");
  if (!IsRegularFile(tracker)) return directory;
  const std::string text = TrackerText(tracker);
  if (text.empty() || text.find('/') != std::string::npos || text == "..") {
    return BadInput(Msg("{} names no iteration: give the directory of one", tracker));
  }
  constexpr size_t kMostDigits = 12;
  const bool number = megatron && IsDigits(text) && text.size() <= kMostDigits;
  const std::string path = JoinPath(directory, number ? fmt::format("iter_{:07d}", std::stoll(text)) : text);
  if (!IsDirectory(path)) {
    return BadInput(Msg("{} names {}, which is not there: copy it, or give the directory of another iteration", tracker,
                        OneLine(BaseName(path))));
  }
  return path;
}

}  // namespace msprobe
