#include "compare/values/joined_tensor.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/message.h"
#include "base/text.h"
#include "tensor/files/tensor_file.h"

namespace msprobe {
namespace {

constexpr uint64_t kMostBytes = uint64_t{16} << 30;
constexpr int64_t kMostGroups = 512;

/// One part: its shape without dimensions of 1 and its elements in C order.
struct Part {
  std::vector<int64_t> shape;
  BigArray<char> bytes;
  DType dtype = DType::kUnknown;
};

Status TooLarge(const std::string& path) {
  return BadInput(Msg("{} is too large to be joined with other tensors: the limit is 16 GiB", path));
}

/// Copies the elements of a strided tensor in C order.
void Gather(const FileTensor& tensor, size_t element, char* to) {
  const size_t dims = tensor.shape.size();
  std::vector<int64_t> at(dims, 0);
  const char* from = static_cast<const char*>(tensor.data);
  const int64_t row = dims ? tensor.shape[dims - 1] : 1;
  const int64_t step = dims ? tensor.strides[dims - 1] : 1;
  for (;;) {
    if (step == 1) {
      std::memcpy(to, from, static_cast<size_t>(row) * element);
    } else {
      for (int64_t i = 0; i < row; ++i) {
        std::memcpy(to + static_cast<size_t>(i) * element, from + i * step * static_cast<int64_t>(element), element);
      }
    }
    to += static_cast<size_t>(row) * element;
    size_t d = dims < 2 ? 0 : dims - 1;
    while (d > 0) {
      --d;
      from += tensor.strides[d] * static_cast<int64_t>(element);
      if (++at[d] < tensor.shape[d]) break;
      from -= tensor.shape[d] * tensor.strides[d] * static_cast<int64_t>(element);
      at[d] = 0;
      if (d == 0) return;
    }
    if (dims < 2) return;
  }
}

StatusOr<Part> ReadPart(const TensorFolder& folder, std::string_view name, DType dtype) {
  MSP_ASSIGN_OR_RETURN(const std::string path, folder.Find(name));
  MSP_ASSIGN_OR_RETURN(const TensorFile file, TensorFile::Open(path, dtype));
  const FileTensor* tensor = file.tensor();
  if (!tensor) return BadInput(Msg("{} does not hold one tensor", path));
  Part out;
  out.dtype = tensor->dtype;
  const size_t element = ElementSize(out.dtype);
  if (element == 0) return BadInput(Msg("{} has a dtype that cannot be compared", path));
  uint64_t bytes = element;
  for (const int64_t n : tensor->shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(n), &bytes) || bytes > kMostBytes) return TooLarge(path);
    if (n != 1) out.shape.push_back(n);
  }
  out.bytes.resize(bytes);
  if (bytes > 0) Gather(*tensor, element, out.bytes.data());
  return out;
}

}  // namespace

StatusOr<JoinedTensor> JoinedTensor::Open(const TensorFolder& folder, const std::vector<std::string_view>& names,
                                          JoinAxis axis, DType dtype, int64_t groups) {
  std::vector<Part> parts;
  uint64_t total = 0;
  for (const std::string_view name : names) {
    MSP_ASSIGN_OR_RETURN(Part part, ReadPart(folder, name, dtype));
    total += part.bytes.size();
    if (total > kMostBytes) return TooLarge(std::string(name));
    parts.push_back(std::move(part));
    if (axis == JoinAxis::kFirstOnly) break;
  }
  if (parts.empty()) return BadInput(Msg("no file to join"));
  const Part& first = parts.front();
  const size_t dims = first.shape.size();
  const size_t along = axis == JoinAxis::kLast && dims > 0 ? dims - 1 : 0;
  JoinedTensor out;
  out.tensor_.shape = dims > 0 || parts.size() == 1 ? first.shape : std::vector<int64_t>{0};
  if (dims > 0) out.tensor_.shape[along] = 0;
  for (const Part& part : parts) {
    const bool fits = part.dtype == first.dtype && part.shape.size() == dims;
    for (size_t d = 0; fits && d < dims; ++d) {
      if (d != along && part.shape[d] != first.shape[d]) return BadInput(Msg("the shapes of the parts do not fit"));
    }
    if (!fits) return BadInput(Msg("the parts differ in dtype or in their number of dimensions"));
    if (out.tensor_.shape.empty()) continue;
    int64_t& length = out.tensor_.shape[along];
    if (__builtin_add_overflow(length, dims > 0 ? part.shape[along] : 1, &length))
      return BadInput(Msg("the parts do not form one tensor"));
  }
  uint64_t rows = total > 0 ? 1 : 0;  // an empty tensor may have any number of empty rows
  for (size_t d = 0; d < along; ++d) rows *= static_cast<uint64_t>(first.shape[d]);
  out.bytes_.reserve(total);
  int64_t common = 0;
  for (const Part& part : parts) common = std::gcd(common, dims > 0 ? part.shape[along] : 1);
  for (int64_t g = 1; g <= std::min(common, kMostGroups); ++g) {
    if (common % g == 0) out.possible_groups_.push_back(g);
  }
  if (groups < 1 || (groups > 1 && (common == 0 || common % groups != 0)))
    return BadInput(Msg("the parts do not form one tensor"));
  for (uint64_t r = 0; r < rows; ++r) {
    for (int64_t g = 0; g < groups; ++g) {
      for (const Part& part : parts) {
        const size_t row = part.bytes.size() / std::max<uint64_t>(rows, 1), group = row / static_cast<size_t>(groups);
        out.bytes_.append(part.bytes.data() + r * row + static_cast<size_t>(g) * group, group);
      }
    }
  }
  out.tensor_.dtype = first.dtype;
  uint64_t bytes = 0;
  if (!SetContiguous(&out.tensor_, kMostBytes, &bytes) || bytes != out.bytes_.size()) {
    return BadInput(Msg("the parts do not form one tensor"));
  }
  out.tensor_.data = out.bytes_.data();
  return out;
}

}  // namespace msprobe
