// Files of safetensors: tensors that are accepted lie side by side and can be read to their last element.
#include <string_view>

#include "fuzz_file.h"
#include "tensor/files/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const auto tensors = ReadSafetensors({reinterpret_cast<const char*>(data), size}, "input");
  if (!tensors.ok()) {
    fuzz::CheckRefusal(tensors.status());
    fuzz::Check(tensors.status().message().find('\n') == std::string::npos, "a refusal is one line");
    return 0;
  }
  uint64_t bytes = 0;
  for (const FileTensor& tensor : *tensors) {
    Stats stats;
    fuzz::Check(ComputeStats(tensor.view(), &stats), "a tensor has a known dtype and few dimensions");
    bytes += static_cast<uint64_t>(stats.count) * ElementSize(tensor.dtype);
  }
  fuzz::Check(bytes < size, "no byte belongs to two tensors");
  return 0;
}
