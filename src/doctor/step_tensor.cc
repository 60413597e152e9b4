#include "doctor/step_tensor.h"

#include "base/message.h"
#include "tensor/files/tensor_file.h"
#include "tensor/kernels/metrics_sources.h"
#include "weights/weight_tensor.h"

namespace msprobe {
namespace {

StatusOr<StepTensor> ValuesOf(const FileTensor& tensor, const std::string& path) {
  int64_t count = 0;
  if (!CountElements(tensor.shape, &count) || count > kMostStepElements) {
    return BadInput(Msg("{} holds more elements than are compared of a batch or gradient: save a part of it", path));
  }
  const WeightTensor whole = WholeTensor(tensor, 0);
  std::string bytes(whole.bytes(), '\0');
  if (count > 0) GatherElements(whole, 0, count, bytes.data());
  StepTensor out;
  out.shape = tensor.shape;
  out.values.resize(static_cast<size_t>(count));
  if (!metrics::ToDoubles(tensor.dtype, bytes.data(), static_cast<size_t>(count), out.values.data())) {
    return BadInput(Msg("{} has elements of a type that is not read here: save them as numbers", path));
  }
  return out;
}

}  // namespace

StatusOr<std::map<std::string, StepTensor>> ReadStepTensors(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const TensorFile file, TensorFile::Open(path));
  if (file.tensors().empty()) return BadInput(Msg("{} holds no tensor: save at least one in each file", path));
  std::map<std::string, StepTensor> out;
  int64_t elements = 0;
  for (const FileTensor& tensor : file.tensors()) {
    MSP_ASSIGN_OR_RETURN(StepTensor values, ValuesOf(tensor, path));
    elements += static_cast<int64_t>(values.values.size());
    if (elements > kMostStepElements) break;  // the first of a large file say enough
    out.emplace(tensor.name, std::move(values));
  }
  return out;
}

}  // namespace msprobe
