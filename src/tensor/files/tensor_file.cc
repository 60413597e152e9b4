#include "tensor/files/tensor_file.h"

#include <algorithm>

#include "tensor/files/tensor_reader.h"

namespace msprobe {
namespace {

const TensorReader* const kReaders[] = {
#define MSPROBE_TENSOR_READER(name) &name,
#include "tensor/files/readers.def"
#undef MSPROBE_TENSOR_READER
};

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
  for (const TensorReader* reader : kReaders) {
    if (!reader->knows(bytes)) continue;
    MSP_ASSIGN_OR_RETURN(file.tensors_, reader->read(bytes, path, dtype));
    break;
  }
  return file;
}

uint64_t TensorFile::OffsetOf(const FileTensor& tensor) const {
  return static_cast<uint64_t>(static_cast<const char*>(tensor.data) - map_->text().data());
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
