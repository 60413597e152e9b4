#include "tensor/tensor_file.h"

#include <algorithm>

#include "tensor/npy_reader.h"
#include "tensor/pt_reader.h"
#include "tensor/safetensors.h"

namespace msprobe {
namespace {

std::string KeyText(const PtValue& key) {
  if (key.kind == PtValue::Kind::kText) return std::string(key.text);
  if (key.kind == PtValue::Kind::kInt || key.kind == PtValue::Kind::kBool) return std::to_string(key.i);
  return "?";
}

/// The reader of the pickle bounds how deep and how large values are.
void Flatten(const PtValue& value, const std::string& name, std::vector<FileTensor>* out) {
  const auto child = [&](const std::string& key) { return name.empty() ? key : name + "." + key; };
  if (value.kind == PtValue::Kind::kTensor) {
    const PtTensor& t = value.tensor;
    out->push_back({name, t.dtype, t.data, t.shape, t.strides, t.requires_grad});
  } else if (value.kind == PtValue::Kind::kDict) {
    for (size_t i = 0; i + 1 < value.items.size(); i += 2)
      Flatten(value.items[i + 1], child(KeyText(value.items[i])), out);
  } else {
    for (size_t i = 0; i < value.items.size(); ++i) Flatten(value.items[i], child(std::to_string(i)), out);
  }
}

}  // namespace

bool SetContiguous(FileTensor* tensor, uint64_t most_bytes, uint64_t* bytes) {
  uint64_t count = 1;
  tensor->strides.assign(tensor->shape.size(), 0);
  for (size_t d = tensor->shape.size(); d-- > 0;) {
    if (tensor->shape[d] < 0 || count > static_cast<uint64_t>(INT64_MAX)) return false;
    tensor->strides[d] = static_cast<int64_t>(count);
    // Empty dimensions must not hide a product that cannot be counted.
    if (tensor->shape[d] > 0 && __builtin_mul_overflow(count, static_cast<uint64_t>(tensor->shape[d]), &count))
      return false;
  }
  if (count > static_cast<uint64_t>(INT64_MAX)) return false;
  for (int64_t n : tensor->shape) count = n == 0 ? 0 : count;
  return !__builtin_mul_overflow(count, ElementSize(tensor->dtype), bytes) && *bytes <= most_bytes;
}

StatusOr<TensorFile> TensorFile::Open(const std::string& path, DType dtype) {
  MSP_ASSIGN_OR_RETURN(MappedFile map, MappedFile::Open(path));
  MSP_ASSIGN_OR_RETURN(TensorFile file, Parse(map.text(), path, dtype));
  file.map_ = std::move(map);
  return file;
}

StatusOr<TensorFile> TensorFile::Parse(std::string_view bytes, const std::string& path, DType dtype) {
  TensorFile file;
  if (bytes.starts_with("\x93NUMPY")) {
    MSP_ASSIGN_OR_RETURN(FileTensor tensor, ReadNpy(bytes, path, dtype));
    file.tensors_.push_back(std::move(tensor));
  } else if (LooksLikeSafetensors(bytes)) {
    MSP_ASSIGN_OR_RETURN(file.tensors_, ReadSafetensors(bytes, path));
  } else {
    MSP_ASSIGN_OR_RETURN(const PtFile pt, PtFile::Parse(bytes, path));
    Flatten(pt.value(), "", &file.tensors_);
  }
  return file;
}

void TensorFile::Release(const void* begin, size_t bytes) const {
  if (!map_) return;
  const std::string_view text = map_->text();
  const auto* at = static_cast<const char*>(begin);
  if (at < text.data() || at > text.data() + text.size()) return;
  const auto offset = static_cast<size_t>(at - text.data());
  map_->Release(offset, offset + std::min(bytes, text.size() - offset));
}

}  // namespace msprobe
