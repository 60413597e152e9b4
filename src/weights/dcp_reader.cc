// Checkpoints of torch.distributed: .metadata says which boxes of which tensors lie where in the .distcp files.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/message.h"
#include "base/text.h"
#include "tensor/files/pt_pickle.h"
#include "weights/megatron_names.h"
#include "weights/readers.h"

namespace msprobe {
namespace {

struct StoredChunk {
  std::string file;
  int64_t offset = 0, length = 0;
};
/// By the name of the tensor and the place of the chunk in it.
using StoredChunks = std::map<std::pair<std::string, std::vector<int64_t>>, StoredChunk>;

bool ReadSizes(const PtValue* value, std::vector<int64_t>* out) {
  out->clear();
  if (!value || (value->kind != PtValue::Kind::kTuple && value->kind != PtValue::Kind::kList)) return false;
  for (const PtValue& n : value->items) {
    if (n.kind != PtValue::Kind::kInt || n.i < 0) return false;
    out->push_back(n.i);
  }
  return true;
}

std::string TextOf(const PtValue* value) {
  return value && value->kind == PtValue::Kind::kText ? std::string(value->text) : std::string();
}

StatusOr<StoredChunks> ReadStored(PtPairs* metadata) {
  StoredChunks out;
  const auto add = [&](const PtValue& index, const PtValue& info) {
    std::vector<int64_t> place;
    (void)ReadSizes(PtMember(index, "offset"), &place);  // what is no tensor has no place
    out[{TextOf(PtMember(index, "fqn")), place}] = {TextOf(PtMember(info, "relative_path")),
                                                    PtInt(PtMember(info, "offset"), -1),
                                                    PtInt(PtMember(info, "length"), -1)};
    return OkStatus();
  };
  if (auto found = metadata->ForEach("storage_data", add); !found.ok()) return found.status();
  return out;
}

/// "rng_state/shard_0_1" as "rng_state", and the states that a layer keeps beside its weights by their kind.
std::string WithoutShard(const std::string& name) {
  constexpr std::string_view kExtra = "_extra_state";
  const std::string whole = name.substr(0, name.find("/shard_"));
  return whole.ends_with(kExtra) ? std::string(kExtra) : whole;
}

class DistributedReader {
 public:
  DistributedReader(const std::string& directory, StoredChunks stored, Checkpoint* out)
      : directory_(directory), stored_(std::move(stored)), out_(out) {}

  Status Add(const std::string& name, const PtValue& description) {
    const PtValue* chunks = PtMember(description, "chunks");
    WeightTensor tensor;
    tensor.name = name;
    int64_t count = 0;
    if (!chunks) {  // bytes: an object and not a tensor
      return AddObject(name);
    }
    if (!ReadSizes(PtMember(description, "size"), &tensor.shape) || !CountElements(tensor.shape, &count))
      return Broken(name, Msg("its size is not one"));
    for (const PtValue& chunk : chunks->items) {
      BoxView box;
      if (!ReadSizes(PtMember(chunk, "offsets"), &box.begin) || !ReadSizes(PtMember(chunk, "sizes"), &box.size) ||
          box.begin.size() != tensor.shape.size() || box.size.size() != tensor.shape.size()) {
        return Broken(name, Msg("a chunk has no place"));
      }
      if (std::find(box.size.begin(), box.size.end(), 0) != box.size.end()) continue;
      MSP_RETURN_IF_ERROR(AddChunk(box, &tensor));
    }
    if (!IsCovered(tensor)) return Broken(name, Msg("its chunks do not fill it"));
    const bool state = name.starts_with("optim") || (name.starts_with("chained_") && Contains(name, ".optimizer."));
    (state ? out_->optimizer : out_->tensors).push_back(std::move(tensor));
    return OkStatus();
  }

  const StateObjects& objects() const { return objects_; }

 private:
  /// Objects are not read but for those that hold the states of an optimizer.
  Status AddObject(const std::string& name) {
    const auto found = stored_.find({name, {}});
    if (!Contains(name, "dp_group_idx_") || !WithoutShard(name).ends_with(".param_state") || found == stored_.end()) {
      out_->left_out.insert(WithoutShard(name));
      return OkStatus();
    }
    int file = 0;
    MSP_ASSIGN_OR_RETURN(const std::string_view bytes, BytesOf(name, found->second, &file));
    auto torch = PtFile::Parse(bytes, out_->files[static_cast<size_t>(file)].path, PtObjects::kShown);
    if (!torch.ok()) {
      out_->notes.push_back(Msg("states of the optimizer are not read: {}", torch.status().text()));
      return OkStatus();
    }
    out_->torch_files.push_back(std::move(*torch));
    objects_[name] = {&out_->torch_files.back().value(), file};
    return OkStatus();
  }

  Status Broken(const std::string& name, const Message& why) const {
    return BadInput(Msg("{} describes {} wrongly ({}): save the checkpoint again with torch.distributed.checkpoint",
                        JoinPath(directory_, ".metadata"), OneLine(name), why));
  }

  Status AddChunk(const BoxView& box, WeightTensor* tensor) {
    const auto found = stored_.find({tensor->name, box.begin});
    if (found == stored_.end()) return Broken(tensor->name, Msg("a chunk is stored nowhere"));
    int file = 0;
    MSP_ASSIGN_OR_RETURN(const std::string_view bytes, BytesOf(tensor->name, found->second, &file));
    MSP_ASSIGN_OR_RETURN(const PtFile torch, PtFile::Parse(bytes, out_->files[file].path, PtObjects::kShown));
    const PtTensor* t = torch.tensor();
    if (!t || t->shape != box.size) return Broken(tensor->name, Msg("a chunk has another shape than it says"));
    if (!tensor->blocks.empty() && tensor->dtype != t->dtype)
      return Broken(tensor->name, Msg("its chunks differ in type"));
    tensor->dtype = t->dtype;
    tensor->blocks.push_back({box.begin, box.size, t->data, t->strides, t->dtype, file, box.begin});
    return OkStatus();
  }

  StatusOr<std::string_view> BytesOf(const std::string& name, const StoredChunk& at, int* number) {
    if (at.file.empty() || at.file.find('/') != std::string::npos)
      return Broken(name, Msg("it names a file elsewhere"));
    const auto [known, fresh] = files_.try_emplace(at.file, 0);
    if (fresh) {
      MSP_ASSIGN_OR_RETURN(known->second, out_->AddFile(JoinPath(directory_, at.file)));
    }
    const int file = known->second;
    const std::string_view all = out_->text(file);
    if (at.offset < 0 || at.length < 0 || static_cast<uint64_t>(at.offset) > all.size() ||
        static_cast<uint64_t>(at.length) > all.size() - static_cast<uint64_t>(at.offset)) {
      return BadInput(
          Msg("{} ends before {} does: it was cut short, save the checkpoint again with torch.distributed.checkpoint",
              out_->files[file].path, OneLine(name)));
    }
    *number = file;
    return all.substr(static_cast<size_t>(at.offset), static_cast<size_t>(at.length));
  }

  std::string directory_;
  StoredChunks stored_;
  Checkpoint* out_;
  StateObjects objects_;
  std::unordered_map<std::string, int> files_;  // numbers in the checkpoint
};

/// What Megatron's names of states become: "param.decoder.layers.0...", of whatever way of sharding they are.
class StateNames {
 public:
  explicit StateNames(const std::vector<WeightTensor>& weights) {
    for (const WeightTensor& t : weights) weights_.emplace(t.name, &t);
  }

  /// The states by their key ("exp_avg"), named as their weights; others are left as they are.
  std::map<std::string, std::vector<WeightTensor>> Take(std::vector<WeightTensor>* states) const {
    constexpr std::string_view kState = "optimizer.state.";
    std::map<std::string, std::vector<WeightTensor>> out;
    std::vector<WeightTensor> others;
    for (WeightTensor& t : *states) {
      const size_t at = t.name.find(kState), begin = at == std::string::npos ? 0 : at + kState.size();
      const size_t end = at == std::string::npos ? at : t.name.find('.', begin);
      if (end == std::string::npos) {
        others.push_back(std::move(t));
        continue;
      }
      std::string key = t.name.substr(begin, end - begin);
      if (key == "fp32_param") key = "param";
      t.name = t.name.substr(end + 1);
      const auto weight = weights_.find(t.name);
      WeightTensor whole;
      const bool flat = weight != weights_.end() && Unflatten(t, *weight->second, &whole);
      out[key].push_back(flat ? std::move(whole) : std::move(t));
    }
    *states = std::move(others);
    return out;
  }

 private:
  /// Before release 0.15, a state whose last axis is that of the elements of a shard, behind the numbers of the shard.
  static bool Unflatten(const WeightTensor& t, const WeightTensor& weight, WeightTensor* out) {
    const size_t dims = weight.shape.size();
    if (dims == 0 || t.shape.size() != dims + 1 || t.elements() != weight.elements()) return false;
    std::vector<int64_t> shard(dims);
    for (size_t d = 0; d < dims; ++d) {
      if (t.shape[d] <= 0 || weight.shape[d] % t.shape[d] != 0) return false;
      shard[d] = weight.shape[d] / t.shape[d];
    }
    out->name = t.name;
    out->dtype = t.dtype;
    out->shape = weight.shape;
    for (const WeightBlock& block : t.blocks) {
      if (block.strides[dims] != 1 && block.size[dims] != 1) return false;
      int64_t shards = 1;  // that this block has something of; mostly one
      for (size_t d = 0; d < dims; ++d) shards *= block.size[d];
      for (int64_t i = 0; i < shards; ++i) {
        if (!AddShard(block, i, shard, out)) return false;
      }
    }
    return IsCovered(*out);
  }

  /// The stretch that a block has of its shard of number `index`.
  static bool AddShard(const WeightBlock& block, int64_t index, const std::vector<int64_t>& shard, WeightTensor* out) {
    const size_t dims = shard.size();
    WeightTensor part;
    part.dtype = block.dtype;
    part.shape = shard;
    std::vector<int64_t> place(dims);
    int64_t offset = 0;
    for (size_t d = dims; d-- > 0; index /= block.size[d]) {
      place[d] = (block.begin[d] + index % block.size[d]) * shard[d];
      offset += index % block.size[d] * block.strides[d];
    }
    const char* data = static_cast<const char*>(block.data) + static_cast<size_t>(offset) * ElementSize(block.dtype);
    if (!AddFlat(block.begin[dims], block.size[dims], data, block.file, &part)) return false;
    for (WeightBlock& b : part.blocks) {
      for (size_t d = 0; d < dims; ++d) b.begin[d] += place[d];
      b.origin = b.begin;
      out->blocks.push_back(std::move(b));
    }
    return true;
  }

  std::unordered_map<std::string_view, const WeightTensor*> weights_;
};

/// Megatron keeps layers of one kind as one tensor: "layers.mlp..." instead of "layers.3.mlp...".
void SplitLayers(std::vector<WeightTensor>* tensors) {
  constexpr std::string_view kLayers = "layers.";
  std::vector<WeightTensor> out;
  for (WeightTensor& t : *tensors) {
    const size_t at = t.name.find(kLayers);
    const size_t tail = at == std::string::npos ? at : at + kLayers.size();
    const bool stacked = tail < t.name.size() && (t.name[tail] < '0' || t.name[tail] > '9') && t.shape.size() > 1;
    if (!stacked || !t.name.starts_with("decoder.")) {
      out.push_back(std::move(t));
      continue;
    }
    for (int64_t i = 0; i < t.shape[0]; ++i) {
      WeightTensor layer = SelectFirst(t, i, "");
      layer.name = fmt::format("{}{}.{}", t.name.substr(0, tail), i, t.name.substr(tail));
      for (WeightBlock& b : layer.blocks) b.origin.erase(b.origin.begin());
      out.push_back(std::move(layer));
    }
  }
  *tensors = std::move(out);
}

/// Experts of one kind, which are one tensor as well, under the names that the files of ranks have.
void SplitExperts(std::vector<WeightTensor>* tensors) {
  constexpr std::string_view kExperts = ".mlp.experts.experts.", kEach = ".mlp.experts.local_experts.";
  constexpr int64_t kMost = 4096;
  std::vector<WeightTensor> out;
  for (WeightTensor& t : *tensors) {
    const size_t at = t.name.find(kExperts);
    if (at == std::string::npos || t.shape.size() < 2 || t.shape[0] > kMost || !t.name.ends_with(".weight")) {
      out.push_back(std::move(t));
      continue;
    }
    for (int64_t i = 0; i < t.shape[0]; ++i) {
      WeightTensor expert = SelectFirst(t, i, "");
      expert.name = fmt::format("{}{}{}.{}", t.name.substr(0, at), kEach, i, t.name.substr(at + kExperts.size()));
      for (WeightBlock& b : expert.blocks) b.origin.erase(b.origin.begin());
      out.push_back(std::move(expert));
    }
  }
  *tensors = std::move(out);
}

/// Weights, or states of them, as the files of Megatron's ranks name them.
void NameLikeRanks(bool megatron, std::vector<WeightTensor>* tensors) {
  SplitLayers(tensors);
  if (!megatron) return;
  SplitExperts(tensors);
  const bool two_stacks = HasTwoStacks(*tensors);
  for (WeightTensor& t : *tensors) t.name = McoreName(std::move(t.name), two_stacks);
}

}  // namespace

Status ReadDistributed(const std::string& directory, Checkpoint* out) {
  const std::string path = JoinPath(directory, ".metadata");
  out->format = "torch.distributed";
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  MSP_ASSIGN_OR_RETURN(PtPairs metadata, PtPairs::Read(file.text(), path));
  MSP_ASSIGN_OR_RETURN(StoredChunks stored, ReadStored(&metadata));
  DistributedReader reader(directory, std::move(stored), out);
  const auto add = [&](const PtValue& name, const PtValue& description) {
    return reader.Add(TextOf(&name), description);
  };
  MSP_ASSIGN_OR_RETURN(const bool described, metadata.ForEach("state_dict_metadata", add));
  if (!described) {
    return BadInput(Msg("{} describes no tensors: save the checkpoint again with torch.distributed.checkpoint", path));
  }
  const std::string common = JoinPath(directory, "common.pt");  // Megatron's arguments
  const bool megatron = PathExists(common);
  auto states = StateNames(out->tensors).Take(&out->optimizer);
  NameLikeRanks(megatron, &out->tensors);
  for (auto& [key, of_weights] : states) {
    NameLikeRanks(megatron, &of_weights);
    for (WeightTensor& t : of_weights) {
      t.name = key + "." + t.name;
      out->optimizer.push_back(std::move(t));
    }
  }
  ReadConfig(directory, &out->facts);
  if (megatron) {
    MSP_ASSIGN_OR_RETURN(const int number, out->AddFile(common));
    MSP_ASSIGN_OR_RETURN(const PtValue* value, OpenTorch(number, out));
    TakeArguments(PtMember(*value, "args"), number, out);
    out->format = "torch.distributed (Megatron)";
    const PtValue* dict = PtDict(*value);
    for (size_t i = 0; dict && i + 1 < dict->items.size(); i += 2) {
      const std::string key(dict->items[i].text);
      if (key != "args" && key != "optimizer" && key != "content_metadata" && !dict->items[i + 1].items.empty())
        out->left_out.insert(key);
    }
    CutBuckets(reader.objects(), out);
  }
  return OkStatus();
}

}  // namespace msprobe
