// One file of tensors: torch.save(), safetensors, .npz, .npy, MindSpore's .ckpt; what it is, its bytes tell.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/message.h"
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
    if (model && PtDict(*model)) return model;
  }
  return nullptr;
}

/// A trainer's file also holds schedulers and random states, which are left out.
Status SortTorch(const PtValue& value, int file, Checkpoint* out) {
  const PtValue* model = ModelOf(value);
  const PtValue* dict = PtDict(value);
  if (!model || !dict) {
    const bool states = PtMember(value, "state") && PtMember(value, "param_groups");
    if (!states) return ListTensors(value, "", file, out, &out->tensors);
    ListStates(value, "", file, out);
    return OkStatus();
  }
  MSP_RETURN_IF_ERROR(ListTensors(*model, "", file, out, &out->tensors));
  for (size_t i = 0; i + 1 < dict->items.size(); i += 2) {
    const std::string key = TorchKey(dict->items[i]);
    const PtValue& item = dict->items[i + 1];
    if (&item == model) continue;
    if (IsOptimizerKey(key)) {
      ListStates(item, key, file, out);
    } else if (key == "args" || key == "hyper_parameters") {
      TakeArguments(&item, file, out);
    } else if (!item.items.empty()) {
      out->left_out.insert(key);
    }
  }
  return OkStatus();
}

std::string PtClassName(const PtValue& value) {
  constexpr size_t kMost = 100;
  const std::string name = OneLine(value.text.substr(0, kMost));
  return value.module.empty() ? name : OneLine(value.module.substr(0, kMost)) + "." + name;
}

/// Whether an object that is not made would hide a tensor.
bool HoldsTensor(const PtValue& value) {  // NOLINT(misc-no-recursion): the reader of the pickle bounds the levels
  return value.kind == PtValue::Kind::kTensor || value.kind == PtValue::Kind::kUnread ||
         std::any_of(value.items.begin(), value.items.end(), HoldsTensor);
}

constexpr size_t kMostNamed = 6;

/// Of Python's own values, such as sets, it says nothing.
void CollectClasses(const PtValue& value, std::set<std::string>* out) {  // NOLINT(misc-no-recursion): bounded levels
  const bool plain = value.module == "builtins" || value.module == "__builtin__" || value.module == "_codecs";
  if (value.kind == PtValue::Kind::kOther && !plain) out->insert(PtClassName(value));
  for (const PtValue& item : value.items) CollectClasses(item, out);
}

/// The first of many, and how many more there are.
std::string Some(const std::set<std::string>& names) {
  std::vector<std::string> some;
  for (const std::string& name : names) {
    if (some.size() < kMostNamed) some.push_back(OneLine(name));
  }
  const size_t more = names.size() - some.size();
  return fmt::format("{}{}", fmt::join(some, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

const PtValue* PtDict(const PtValue& value) {
  if (value.kind == PtValue::Kind::kDict) return &value;
  const bool holds = value.kind == PtValue::Kind::kOther && value.items.size() == kPtObjectItems &&
                     value.items[kPtDict].kind == PtValue::Kind::kDict;
  return holds ? &value.items[kPtDict] : nullptr;
}

const PtValue* PtMember(const PtValue& value, std::string_view key) {  // NOLINT(misc-no-recursion): two levels
  if (value.kind == PtValue::Kind::kOther) {
    if (value.items.size() != kPtObjectItems) return nullptr;
    const PtValue* found = PtMember(value.items[kPtState], key);
    return found ? found : PtMember(value.items[kPtDict], key);
  }
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

Status ListTensors(const PtValue& value, const std::string& prefix, int file, Checkpoint* checkpoint,
                   std::vector<WeightTensor>* out) {  // NOLINT(misc-no-recursion)
  const auto child = [&](const std::string& key) { return prefix.empty() ? key : prefix + "." + key; };
  const auto hides = [&](const std::string& what) {
    return BadInput(Msg("{} holds {} as {}: what tensor that is cannot be told without running it, save a plain tensor",
                        checkpoint->files[static_cast<size_t>(file)].path, OneLine(prefix), what));
  };
  switch (value.kind) {
    case PtValue::Kind::kTensor: {
      const PtTensor& t = *value.tensor;
      out->push_back(WholeTensor({prefix, t.dtype, t.data, t.shape, t.strides, t.requires_grad}, file));
      return OkStatus();
    }
    case PtValue::Kind::kDict:
      for (size_t i = 0; i + 1 < value.items.size(); i += 2)
        MSP_RETURN_IF_ERROR(ListTensors(value.items[i + 1], child(TorchKey(value.items[i])), file, checkpoint, out));
      return OkStatus();
    case PtValue::Kind::kList:
    case PtValue::Kind::kTuple:
      for (size_t i = 0; i < value.items.size(); ++i)
        MSP_RETURN_IF_ERROR(ListTensors(value.items[i], child(std::to_string(i)), file, checkpoint, out));
      return OkStatus();
    case PtValue::Kind::kUnread: return hides("a storage, or nested too deeply");
    case PtValue::Kind::kOther: break;
    default: return OkStatus();
  }
  if (value.items.size() != kPtObjectItems || HoldsTensor(value.items[kPtArguments]))
    return hides(PtClassName(value) + "(...) of tensors");
  if (!HoldsTensor(value)) {
    checkpoint->unread[PtClassName(value)].insert(prefix);
    return OkStatus();
  }
  for (const size_t item : {size_t{kPtState}, size_t{kPtList}, size_t{kPtDict}})
    MSP_RETURN_IF_ERROR(ListTensors(value.items[item], prefix, file, checkpoint, out));
  return OkStatus();
}

void AddSetting(const std::string& name, double value, int file, Checkpoint* out) {
  const auto same = [&](const WeightTensor& t) { return t.name == name; };
  if (std::any_of(out->settings.begin(), out->settings.end(), same)) return;
  out->numbers.push_back(value);
  out->settings.push_back(WholeTensor({name, DType::kFloat64, &out->numbers.back(), {}, {}, false}, file));
}

void ListSettings(const PtValue& value, const std::string& prefix, int file,
                  Checkpoint* out) {  // NOLINT(misc-no-recursion): the reader of the pickle bounds the levels
  // How an update is computed, not what it is.
  constexpr std::array<std::string_view, 4> kWays{"foreach", "fused", "capturable", "differentiable"};
  const auto child = [&](const std::string& key) { return prefix.empty() ? key : prefix + "." + key; };
  switch (value.kind) {
    case PtValue::Kind::kBool:
    case PtValue::Kind::kInt: return AddSetting(prefix, static_cast<double>(value.i), file, out);
    case PtValue::Kind::kFloat: return AddSetting(prefix, value.d, file, out);
    case PtValue::Kind::kList:
    case PtValue::Kind::kTuple:
      for (size_t i = 0; i < value.items.size(); ++i) ListSettings(value.items[i], child(std::to_string(i)), file, out);
      return;
    case PtValue::Kind::kDict:
      for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
        const std::string key = TorchKey(value.items[i]);
        const PtValue& item = value.items[i + 1];
        if (std::find(kWays.begin(), kWays.end(), key) != kWays.end()) continue;
        // Their numbers say nothing, how many there are does.
        if (key == "params" || key == "param_names") {
          if (key == "params") AddSetting(child(key), static_cast<double>(item.items.size()), file, out);
        } else {
          ListSettings(item, child(key), file, out);
        }
      }
      return;
    default: return;
  }
}

void ListStates(const PtValue& value, const std::string& prefix, int file, Checkpoint* out) {
  std::vector<WeightTensor> states;
  const Status status = ListTensors(value, prefix, file, out, &states);
  if (!status.ok()) {
    out->notes.push_back(Msg("states of the optimizer are not read: {}", status.text()));
    return;
  }
  for (WeightTensor& t : states) out->optimizer.push_back(std::move(t));
  ListSettings(value, prefix, file, out);
}

void NoteUnread(Checkpoint* out) {
  for (const auto& [type, places] : out->unread) {
    out->notes.push_back(
        places.size() == 1
            ? Msg("an object of {} among the tensors not made and not read: {}", type, Some(places))
            : Msg("{} objects of {} among the tensors not made and not read: {}", places.size(), type, Some(places)));
  }
  if (out->arguments) {
    std::set<std::string> classes;
    for (const PtValue& item : out->arguments->items) CollectClasses(item, &classes);
    if (!classes.empty())
      out->notes.push_back(Msg("objects in the arguments are kept as names, none was made: {}", Some(classes)));
  }
  if (!out->left_out.empty()) out->notes.push_back(Msg("not read, for it holds no weights: {}", Some(out->left_out)));
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
  return SortTorch(*value, file, out);
}

}  // namespace msprobe
