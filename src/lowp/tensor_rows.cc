#include "lowp/tensor_rows.h"

#include <algorithm>
#include <array>

#include "base/message.h"
#include "tensor/kernels/layout.h"
#include "tensor/kernels/metrics_sources.h"

namespace msprobe {
std::vector<int64_t> SampleOf(int64_t n, int64_t most) {
  const int64_t count = std::min(n, std::max<int64_t>(most, 1));
  std::vector<int64_t> out(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    out[static_cast<size_t>(i)] =
        static_cast<int64_t>(static_cast<double>(i) * static_cast<double>(n) / static_cast<double>(count));
  return out;
}

StatusOr<OpenTensor> OpenTensor::Open(const RecordedTensor& tensor) {
  OpenTensor out;
  MSP_ASSIGN_OR_RETURN(out.file_, TensorFile::Open(tensor.path, tensor.dtype));
  if (out.file_.tensor() == nullptr)
    return BadInput(Msg("{} holds {} tensors instead of one", tensor.path, out.file_.tensors().size()));
  if (out.tensor().shape != tensor.shape) return BadInput(Msg("{} has another shape than its dump says", tensor.path));
  if (!IsFloating(out.tensor().dtype) && out.tensor().dtype != DType::kBool)
    return BadInput(Msg("{} holds {}, which is no floating type", tensor.path, DTypeName(out.tensor().dtype)));
  return out;
}

int64_t OpenTensor::count() const {
  int64_t count = 1;
  for (const int64_t n : shape()) count *= n;
  return count;
}

Status OpenTensor::Read(int64_t begin, int64_t end, float* out) const {
  Layout layout;
  if (!MakeLayout(tensor().view(), Order::kLogical, &layout))
    return BadInput(Msg("a tensor has a layout that cannot be read"));
  const DType dtype = tensor().dtype;
  std::array<double, 1024> wide;  // float32 and everything narrower comes back as it was
  LayoutWalker(layout).Walk(begin, end, [&](const void* p, size_t n) {
    const char* from = static_cast<const char*>(p);
    for (size_t some; n > 0; n -= some, from += some * layout.element, out += some) {
      some = std::min(n, wide.size());
      (void)metrics::ToDoubles(dtype, from, some, wide.data());  // Open() takes floating types and truths only
      std::transform(wide.begin(), wide.begin() + some, out, [](double v) { return static_cast<float>(v); });
    }
  });
  return OkStatus();
}

StatusOr<float> OpenTensor::Largest() const {
  constexpr int64_t kPart = 1 << 16;
  std::vector<float> part(kPart);
  float largest = 0;
  for (int64_t i = 0; i < count(); i += kPart) {
    const int64_t n = std::min(kPart, count() - i);
    MSP_RETURN_IF_ERROR(Read(i, i + n, part.data()));
    largest = std::max(largest, LargestMagnitude(part.data(), n));
  }
  return largest;
}

StatusOr<DenseMatrix> OpenTensor::Rows(int64_t cols, const std::vector<int64_t>& rows) const {
  DenseMatrix out(static_cast<int64_t>(rows.size()), cols);
  for (size_t i = 0; i < rows.size(); ++i)
    MSP_RETURN_IF_ERROR(Read(rows[i] * cols, (rows[i] + 1) * cols, out.Row(static_cast<int64_t>(i))));
  return out;
}

}  // namespace msprobe
