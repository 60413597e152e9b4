// One file of tensors: torch.save(), safetensors, .npz, .npy, MindSpore's .ckpt; what it is, its bytes tell.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "tensor/files/safetensors.h"
#include "tensor/files/tensor_file.h"
#include "weights/readers.h"

namespace msprobe {
namespace {

constexpr std::array<std::string_view, 5> kModelKeys{"model", "state_dict", "model_state_dict", "module", "net"};

bool IsOptimizerKey(std::string_view key) { return key.starts_with("optim") || key == "opt"; }

std::string TorchKey(const PtValue& key) {
  if (key.kind == PtValue::Kind::kText) return std::string(key.text);
  if (key.kind == PtValue::Kind::kInt || key.kind == PtValue::Kind::kBool) return std::to_string(key.i);
  return "?";
}

/// The model of a file that holds more than weights, as trainers write them: null for one that holds weights alone.
const PtValue* ModelOf(const PtValue& value) {
  for (const std::string_view key : kModelKeys) {
    const PtValue* model = PtMember(value, key);
    if (model && model->kind == PtValue::Kind::kDict) return model;
  }
  return nullptr;
}

/// A trainer's file also holds schedulers and random states, which are left out.
void SortTorch(const PtValue& value, int file, Checkpoint* out) {
  const PtValue* model = ModelOf(value);
  if (!model) {
    const bool states = PtMember(value, "state") && PtMember(value, "param_groups");
    return ListTensors(value, "", file, states ? &out->optimizer : &out->tensors);
  }
  ListTensors(*model, "", file, &out->tensors);
  for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
    const std::string key = TorchKey(value.items[i]);
    if (&value.items[i + 1] == model) continue;
    if (IsOptimizerKey(key)) ListTensors(value.items[i + 1], key, file, &out->optimizer);
    if (key == "args" || key == "hyper_parameters") TakeArguments(&value.items[i + 1], file, out);
  }
}

}  // namespace

const PtValue* PtMember(const PtValue& value, std::string_view key) {
  if (value.kind == PtValue::Kind::kOther) return value.items.size() > 1 ? PtMember(value.items[1], key) : nullptr;
  if (value.kind == PtValue::Kind::kTuple && value.items.size() == 2) {  // attributes in a dict, and in slots
    const PtValue* found = PtMember(value.items[0], key);
    return found ? found : PtMember(value.items[1], key);
  }
  if (value.kind != PtValue::Kind::kDict) return nullptr;
  for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
    if (value.items[i].kind == PtValue::Kind::kText && value.items[i].text == key) return &value.items[i + 1];
  }
  return nullptr;
}

int64_t PtInt(const PtValue* value, int64_t otherwise) {
  const bool is = value && (value->kind == PtValue::Kind::kInt || value->kind == PtValue::Kind::kBool);
  return is ? value->i : otherwise;
}

void TakeArguments(const PtValue* args, int file, Checkpoint* out) {
  if (!args) return;
  out->arguments = args;
  out->arguments_file = file;
  ReadArguments(*args, &out->facts);
}

StatusOr<const PtValue*> OpenTorch(int file, Checkpoint* out) {
  const std::string& path = out->files[static_cast<size_t>(file)].path;
  MSP_ASSIGN_OR_RETURN(PtFile torch, PtFile::Parse(out->text(file), path, PtObjects::kShown));
  out->torch_files.push_back(std::move(torch));
  return &out->torch_files.back().value();
}

void ListTensors(const PtValue& value, const std::string& prefix, int file, std::vector<WeightTensor>* out) {
  const auto child = [&](const std::string& key) { return prefix.empty() ? key : prefix + "." + key; };
  if (value.kind == PtValue::Kind::kTensor) {
    const PtTensor& t = value.tensor;
    out->push_back(WholeTensor({prefix, t.dtype, t.data, t.shape, t.strides, t.requires_grad}, file));
  } else if (value.kind == PtValue::Kind::kDict) {
    for (size_t i = 0; i + 1 < value.items.size(); i += 2)
      ListTensors(value.items[i + 1], child(TorchKey(value.items[i])), file, out);
  } else if (value.kind == PtValue::Kind::kList || value.kind == PtValue::Kind::kTuple) {
    for (size_t i = 0; i < value.items.size(); ++i) ListTensors(value.items[i], child(std::to_string(i)), file, out);
  } else if (value.kind == PtValue::Kind::kOther && value.items.size() > 1) {
    ListTensors(value.items[1], prefix, file, out);
  }
}

Status ReadTensorFile(const std::string& path, Checkpoint* out) {
  if (path.ends_with(".index.json")) return ReadHuggingFace(std::string(DirName(path)), out);
  MSP_ASSIGN_OR_RETURN(const int file, out->AddFile(path));
  const std::string_view bytes = out->text(file);
  constexpr std::string_view kZip("PK\x03\x04", 4), kNpy("\x93NUMPY", 6);
  if (LooksLikeSafetensors(bytes) || bytes.starts_with(kNpy)) {
    out->format = bytes.starts_with(kNpy) ? "npy" : "safetensors";
    MSP_ASSIGN_OR_RETURN(const TensorFile tensors, TensorFile::Parse(bytes, path));
    for (const FileTensor& t : tensors.tensors()) out->tensors.push_back(WholeTensor(t, file));
    if (out->tensors.size() == 1 && out->tensors[0].name.empty()) out->tensors[0].name = BaseName(path);
    return OkStatus();
  }
  if (bytes.starts_with(kZip)) {
    MSP_ASSIGN_OR_RETURN(const std::vector<ZipMember> members, ReadZip(bytes, path));
    const bool npz = std::any_of(members.begin(), members.end(), [](auto& m) { return m.name.ends_with(".npy"); });
    if (npz) return ReadNpz(path, out);
  } else if (!bytes.starts_with('\x80')) {
    return ReadMindSpore(path, out);
  }
  out->format = "torch";
  MSP_ASSIGN_OR_RETURN(const PtValue* value, OpenTorch(file, out));
  SortTorch(*value, file, out);
  return OkStatus();
}

}  // namespace msprobe
