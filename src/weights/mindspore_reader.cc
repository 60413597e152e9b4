// MindSpore's .ckpt (messages of protobuf), and .npz.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/message.h"
#include "base/text.h"
#include "tensor/files/npy_reader.h"
#include "tensor/files/wire.h"
#include "tensor/files/zip_reader.h"
#include "weights/readers.h"

namespace msprobe {
namespace {

constexpr size_t kMostParameters = size_t{1} << 19;

/// Large tensors come in slices, one behind the other, each under the same tag.
struct Parameter {
  std::string name, type;
  std::vector<int64_t> shape;
  std::vector<std::string_view> slices;
};

bool ReadDims(const Wire::Member& m, std::vector<int64_t>* shape) {
  if (!m.text) {
    shape->push_back(static_cast<int64_t>(m.value));
    return shape->size() <= static_cast<size_t>(kMaxDims);
  }
  Wire packed(m.bytes);
  while (!packed.empty() && packed.good() && shape->size() <= static_cast<size_t>(kMaxDims))
    shape->push_back(static_cast<int64_t>(packed.Number()));
  return packed.good() && shape->size() <= static_cast<size_t>(kMaxDims);
}

bool ReadMindSporeTensor(std::string_view bytes, Parameter* out) {
  enum Field : uint8_t { kDims = 1, kType = 2, kContent = 3 };
  Wire wire(bytes);
  Wire::Member m;
  while (wire.Next(&m)) {
    if (m.number == kDims && !ReadDims(m, &out->shape)) return false;
    if (m.number == kType) out->type = m.bytes;
    if (m.number == kContent) out->slices.push_back(m.bytes);
  }
  return wire.good();
}

/// Why the file is refused, or "".
Message ReadParameters(std::string_view bytes, std::vector<Parameter>* out) {
  enum Field : uint8_t { kTag = 1, kTensor = 2, kMap = 3 };
  // Behind the last message there may be a checksum in a form of its own.
  constexpr size_t kTail = 17;
  if (bytes.size() > kTail && bytes.substr(bytes.size() - kTail).starts_with("crc_num")) bytes.remove_suffix(kTail);
  Wire wire(bytes);
  Wire::Member value, m;
  while (wire.Next(&value)) {
    if (value.number != 1 || !value.text) return Msg("it is not a MindSpore checkpoint");
    Parameter parameter;
    Wire inner(value.bytes);
    bool tensor = false;
    while (inner.Next(&m)) {
      if (m.number == kTag && m.text) parameter.name = m.bytes;
      if (m.number == kMap) return Msg("it holds tables of keys (MapParameter), which are not read");
      if (m.number != kTensor || !m.text) continue;
      tensor = true;
      if (!ReadMindSporeTensor(m.bytes, &parameter)) return Msg("a tensor is damaged");
    }
    if (!inner.good() || parameter.name.empty() || !tensor) return Msg("a parameter is damaged");
    if (!out->empty() && out->back().name == parameter.name) {
      for (const std::string_view slice : parameter.slices) out->back().slices.push_back(slice);
      continue;
    }
    if (out->size() >= kMostParameters) return Msg("it holds too many parameters");
    out->push_back(std::move(parameter));
  }
  return wire.good() && !out->empty() ? Message() : Msg("it is not a whole MindSpore checkpoint, or it is encrypted");
}

bool IsTrainingState(std::string_view name) {
  constexpr std::array<std::string_view, 9> kPrefixes{"adam_m.", "adam_v.", "moment1.", "moment2.",  "moments.",
                                                      "accum.",  "fp32_",   "optim",    "loss_scale"};
  constexpr std::array<std::string_view, 10> kNames{
      "global_step", "step_num",    "epoch_num", "learning_rate",         "scale_sense",
      "beta1_power", "beta2_power", "momentum",  "current_iterator_step", "last_overflow_iterator_step"};
  const auto starts = [&](std::string_view prefix) { return name.starts_with(prefix); };
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), starts) ||
         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace

Status ReadMindSpore(const std::string& path, Checkpoint* out) {
  MSP_ASSIGN_OR_RETURN(const int file, out->AddFile(path));
  const auto refuse = [&](const Message& why) {
    return BadInput(
        Msg("{} cannot be read ({}): give a file of safetensors, torch.save(), NumPy or MindSpore", path, why));
  };
  std::vector<Parameter> parameters;
  if (const Message why = ReadParameters(out->text(file), &parameters); !why.empty()) return refuse(why);
  out->format = "MindSpore";
  for (Parameter& p : parameters) {
    const std::string shown = OneLine(p.name.substr(0, 100));
    WeightTensor t;
    t.name = std::move(p.name);
    t.shape = std::move(p.shape);
    if (t.shape.size() == 1 && t.shape[0] == 0) t.shape.clear();  // as it writes tensors without dimensions
    t.dtype = ParseDType(p.type);
    int64_t count = 0;
    if (p.type == "str") continue;
    if (t.dtype == DType::kUnknown) return refuse(Msg("{} is of type {}", shown, OneLine(p.type)));
    if (!CountElements(t.shape, &count)) return refuse(Msg("the shape of {} is damaged", shown));
    int64_t at = 0;
    for (const std::string_view slice : p.slices) {
      const auto elements = static_cast<int64_t>(slice.size() / ElementSize(t.dtype));
      if (slice.size() % ElementSize(t.dtype) != 0 || !AddFlat(at, elements, slice.data(), file, &t))
        return refuse(Msg("the shape of {} does not fit its bytes", shown));
      at += elements;
    }
    if (at != count) return refuse(Msg("the shape of {} does not fit its bytes", shown));
    (IsTrainingState(t.name) ? out->optimizer : out->tensors).push_back(std::move(t));
  }
  return OkStatus();
}

Status ReadNpz(const std::string& path, Checkpoint* out) {
  MSP_ASSIGN_OR_RETURN(const int file, out->AddFile(path));
  out->format = "npz";
  MSP_ASSIGN_OR_RETURN(const std::vector<ZipMember> members, ReadZip(out->text(file), path));
  constexpr std::string_view kEnding = ".npy";
  for (const ZipMember& m : members) {
    if (!m.name.ends_with(kEnding)) continue;
    MSP_ASSIGN_OR_RETURN(FileTensor t, ReadNpy(m.bytes, path + ": " + OneLine(m.name.substr(0, 200)), DType::kUnknown));
    t.name = m.name.substr(0, m.name.size() - kEnding.size());
    out->tensors.push_back(WholeTensor(std::move(t), file));
  }
  return OkStatus();
}

}  // namespace msprobe
