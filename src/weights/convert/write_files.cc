// Files of torch.save(), safetensors and MindSpore's .ckpt, tensor by tensor.
#include <fmt/format.h>

#include <array>
#include <unordered_set>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "tensor/files/pt_archive.h"
#include "tensor/files/safetensors.h"
#include "tensor/kernels/crc32.h"
#include "weights/convert/out_weight.h"

namespace msprobe {
namespace {

std::string ShownName(const std::string& name) { return OneLine(name.substr(0, 100)); }

/// An OrderedDict would do as well; a state dict that is loaded need not be one.
std::string PickledState(const std::vector<OutWeight>& weights) {
  std::string out = "\x80\x02}";
  if (!weights.empty()) out += '(';
  for (size_t i = 0; i < weights.size(); ++i) {
    AppendPickledText(weights[i].name, &out);
    const std::string key = std::to_string(i);
    AppendPickledTensor({weights[i].dtype, weights[i].shape, static_cast<uint64_t>(weights[i].tensor.elements()), key},
                        &out);
  }
  if (!weights.empty()) out += 'u';
  return out + '.';
}

Status CheckNames(const std::string& path, const std::vector<OutWeight>& weights) {
  std::unordered_set<std::string_view> names;
  for (const OutWeight& w : weights) {
    if (w.name.empty() || !names.insert(w.name).second) {
      return BadInput(Msg("{}: two weights would have the name {}: give a map with --map", path, ShownName(w.name)));
    }
  }
  return OkStatus();
}

void AppendVarint(uint64_t n, std::string* out) {
  constexpr uint64_t kMore = 0x80;
  for (; n >= kMore; n >>= 7) out->push_back(static_cast<char>(n | kMore));
  out->push_back(static_cast<char>(n));
}

/// The key of a field that holds bytes, and how many.
void AppendBytesKey(uint32_t number, uint64_t size, std::string* out) {
  AppendVarint(number << 3 | 2, out);
  AppendVarint(size, out);
}

std::string_view MindSporeType(DType t) {
  constexpr std::array<std::pair<DType, std::string_view>, 13> kTypes{{{DType::kFloat32, "Float32"},
                                                                       {DType::kFloat16, "Float16"},
                                                                       {DType::kBFloat16, "BFloat16"},
                                                                       {DType::kFloat64, "Float64"},
                                                                       {DType::kInt8, "Int8"},
                                                                       {DType::kInt16, "Int16"},
                                                                       {DType::kInt32, "Int32"},
                                                                       {DType::kInt64, "Int64"},
                                                                       {DType::kUInt8, "UInt8"},
                                                                       {DType::kUInt16, "UInt16"},
                                                                       {DType::kUInt32, "UInt32"},
                                                                       {DType::kUInt64, "UInt64"},
                                                                       {DType::kBool, "Bool"}}};
  for (const auto& [dtype, name] : kTypes) {
    if (dtype == t) return name;
  }
  return {};
}

/// A message for one slice of a tensor, up to its bytes, which end it.
std::string MindSporeHead(const OutWeight& w, uint64_t bytes) {
  std::string tensor;
  std::vector<int64_t> dims = w.shape;
  if (dims.empty()) dims = {0};  // how it writes tensors without dimensions
  for (const int64_t n : dims) {
    AppendVarint(1 << 3, &tensor);
    AppendVarint(static_cast<uint64_t>(n), &tensor);
  }
  const std::string_view type = MindSporeType(w.dtype);
  AppendBytesKey(2, type.size(), &tensor);
  tensor += type;
  AppendBytesKey(3, bytes, &tensor);
  std::string value;
  AppendBytesKey(1, w.name.size(), &value);
  value += w.name;
  AppendBytesKey(2, tensor.size() + bytes, &value);
  value += tensor;
  std::string out;
  AppendBytesKey(1, value.size() + bytes, &out);
  return out + value;
}

}  // namespace

Status WriteTorchFile(const std::string& path, const Checkpoint& from, const std::vector<OutWeight>& weights) {
  MSP_RETURN_IF_ERROR(CheckNames(path, weights));
  const std::string_view name = BaseName(path);
  PtArchive archive{std::string(name.substr(0, name.rfind('.')))};
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(archive.Start(PickledState(weights))));
  for (size_t i = 0; i < weights.size(); ++i) {
    const OutWeight& w = weights[i];
    const uint64_t bytes = static_cast<uint64_t>(w.tensor.elements()) * ElementSize(w.dtype);
    MSP_RETURN_IF_ERROR(file.Write(archive.Before(fmt::format("data/{}", i), bytes, std::nullopt)));
    uint32_t crc = 0;
    MSP_RETURN_IF_ERROR(StreamElements(from, w, [&](std::string_view piece) {
      crc = Crc32(piece.data(), piece.size(), crc);
      return file.Write(piece);
    }));
    MSP_RETURN_IF_ERROR(file.Write(archive.Behind(crc)));
  }
  MSP_RETURN_IF_ERROR(file.Write(archive.Finish()));
  return file.Commit();
}

Status WriteSafetensorsFile(const std::string& path, const Checkpoint& from, const std::vector<OutWeight>& weights) {
  MSP_RETURN_IF_ERROR(CheckNames(path, weights));
  std::vector<TensorHeading> labels;
  for (const OutWeight& w : weights) labels.push_back({w.name, w.dtype, w.shape});
  std::vector<size_t> order;
  MSP_ASSIGN_OR_RETURN(const std::string head, SafetensorsHead(path, labels, &order));
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(head));
  for (const size_t i : order) {
    MSP_RETURN_IF_ERROR(StreamElements(from, weights[i], [&](std::string_view piece) { return file.Write(piece); }));
  }
  return file.Commit();
}

Status WriteMindSporeFile(const std::string& path, const Checkpoint& from, const std::vector<OutWeight>& weights) {
  constexpr uint64_t kSlice = uint64_t{512} << 20;  // as MindSpore cuts large tensors
  MSP_RETURN_IF_ERROR(CheckNames(path, weights));
  for (const OutWeight& w : weights) {
    if (MindSporeType(w.dtype).empty()) {
      return BadInput(Msg("{}: MindSpore has no type {} for {}: convert it with --dtype", path, DTypeName(w.dtype),
                          ShownName(w.name)));
    }
    if (w.tensor.elements() == 0)
      return BadInput(Msg("{}: {} has no elements, which MindSpore does not store: leave it out with --map", path,
                          ShownName(w.name)));
  }
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  for (const OutWeight& w : weights) {
    uint64_t left = static_cast<uint64_t>(w.tensor.elements()) * ElementSize(w.dtype), in_slice = 0;
    const auto take = [&](std::string_view piece) -> Status {
      while (!piece.empty()) {
        if (in_slice == 0) {
          in_slice = std::min(left, kSlice);
          left -= in_slice;
          MSP_RETURN_IF_ERROR(file.Write(MindSporeHead(w, in_slice)));
        }
        const std::string_view now = piece.substr(0, in_slice);
        MSP_RETURN_IF_ERROR(file.Write(now));
        in_slice -= now.size();
        piece.remove_prefix(now.size());
      }
      return OkStatus();
    };
    MSP_RETURN_IF_ERROR(StreamElements(from, w, take));
  }
  return file.Commit();
}

}  // namespace msprobe
