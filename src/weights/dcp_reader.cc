// Checkpoints of torch.distributed: .metadata says which boxes of which tensors lie where in the .distcp files.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

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

StoredChunks ReadStored(const PtValue& metadata) {
  StoredChunks out;
  const PtValue* stored = PtMember(metadata, "storage_data");
  if (!stored || stored->kind != PtValue::Kind::kDict) return out;
  for (size_t i = 0; i + 1 < stored->items.size(); i += 2) {
    const PtValue &index = stored->items[i], &info = stored->items[i + 1];
    std::vector<int64_t> place;
    (void)ReadSizes(PtMember(index, "offset"), &place);  // what is no tensor has no place
    out[{TextOf(PtMember(index, "fqn")), place}] = {TextOf(PtMember(info, "relative_path")),
                                                    PtInt(PtMember(info, "offset"), -1),
                                                    PtInt(PtMember(info, "length"), -1)};
  }
  return out;
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
    if (!chunks || !ReadSizes(PtMember(description, "size"), &tensor.shape) || !CountElements(tensor.shape, &count))
      return chunks ? Broken(name, "its size is not one") : OkStatus();  // bytes: not a tensor
    for (const PtValue& chunk : chunks->items) {
      BoxView box;
      if (!ReadSizes(PtMember(chunk, "offsets"), &box.begin) || !ReadSizes(PtMember(chunk, "sizes"), &box.size) ||
          box.begin.size() != tensor.shape.size() || box.size.size() != tensor.shape.size()) {
        return Broken(name, "a chunk has no place");
      }
      if (std::find(box.size.begin(), box.size.end(), 0) != box.size.end()) continue;
      MSP_RETURN_IF_ERROR(AddChunk(box, &tensor));
    }
    if (!IsCovered(tensor)) return Broken(name, "its chunks do not fill it");
    const bool state = name.starts_with("optim");
    (state ? out_->optimizer : out_->tensors).push_back(std::move(tensor));
    return OkStatus();
  }

 private:
  Status Broken(const std::string& name, const std::string& why) const {
    return BadInput(
        fmt::format("{} describes {} wrongly ({}): save the checkpoint again with torch.distributed.checkpoint",
                    JoinPath(directory_, ".metadata"), OneLine(name), why));
  }

  Status AddChunk(const BoxView& box, WeightTensor* tensor) {
    const auto found = stored_.find({tensor->name, box.begin});
    if (found == stored_.end()) return Broken(tensor->name, "a chunk is stored nowhere");
    const StoredChunk& at = found->second;
    if (at.file.empty() || at.file.find('/') != std::string::npos)
      return Broken(tensor->name, "it names a file elsewhere");
    MSP_ASSIGN_OR_RETURN(const int file, out_->AddFile(JoinPath(directory_, at.file)));
    const std::string_view all = out_->text(file);
    if (at.offset < 0 || at.length < 0 || static_cast<uint64_t>(at.offset) > all.size() ||
        static_cast<uint64_t>(at.length) > all.size() - static_cast<uint64_t>(at.offset)) {
      return BadInput(fmt::format(
          "{} ends before {} does: it was cut short, save the checkpoint again with torch.distributed.checkpoint",
          out_->files[file].path, OneLine(tensor->name)));
    }
    const std::string_view bytes = all.substr(static_cast<size_t>(at.offset), static_cast<size_t>(at.length));
    MSP_ASSIGN_OR_RETURN(const PtFile torch, PtFile::Parse(bytes, out_->files[file].path, PtObjects::kShown));
    const PtTensor* t = torch.tensor();
    if (!t || t->shape != box.size) return Broken(tensor->name, "a chunk has another shape than it says");
    if (!tensor->blocks.empty() && tensor->dtype != t->dtype) return Broken(tensor->name, "its chunks differ in type");
    tensor->dtype = t->dtype;
    tensor->blocks.push_back({box.begin, box.size, t->data, t->strides, t->dtype, file, box.begin});
    return OkStatus();
  }

  std::string directory_;
  StoredChunks stored_;
  Checkpoint* out_;
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

}  // namespace

Status ReadDistributed(const std::string& directory, Checkpoint* out) {
  const std::string path = JoinPath(directory, ".metadata");
  out->format = "torch.distributed";
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const auto no_storage = [](std::string_view) -> const std::string_view* { return nullptr; };
  MSP_ASSIGN_OR_RETURN(const PtValue metadata, ReadPtPickle(file.text(), no_storage, path, PtObjects::kShown));
  const PtValue* tensors = PtMember(metadata, "state_dict_metadata");
  if (!tensors || tensors->kind != PtValue::Kind::kDict) {
    return BadInput(
        fmt::format("{} describes no tensors: save the checkpoint again with torch.distributed.checkpoint", path));
  }
  DistributedReader reader(directory, ReadStored(metadata), out);
  for (size_t i = 0; i + 1 < tensors->items.size(); i += 2) {
    MSP_RETURN_IF_ERROR(reader.Add(TextOf(&tensors->items[i]), tensors->items[i + 1]));
  }
  SplitLayers(&out->tensors);
  ReadConfig(directory, &out->facts);
  const std::string common = JoinPath(directory, "common.pt");  // Megatron's arguments
  if (PathExists(common)) {
    MSP_ASSIGN_OR_RETURN(const int number, out->AddFile(common));
    MSP_ASSIGN_OR_RETURN(const PtValue* value, OpenTorch(number, out));
    TakeArguments(PtMember(*value, "args"), number, out);
    out->format = "torch.distributed (Megatron)";
    const bool two_stacks = HasTwoStacks(out->tensors);
    for (WeightTensor& t : out->tensors) t.name = McoreName(std::move(t.name), two_stacks);
  }
  return OkStatus();
}

}  // namespace msprobe
