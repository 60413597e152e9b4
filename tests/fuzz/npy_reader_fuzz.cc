// Files of numpy: an array that is accepted can be read to its last element.
#include <string_view>

#include "fuzz_file.h"
#include "tensor/files/npy_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const DType expected : {DType::kUnknown, DType::kFloat8E5M2, DType::kFloat16}) {
    const auto tensor = ReadNpy(bytes, "input", expected);
    if (!tensor.ok()) {
      fuzz::CheckRefusal(tensor.status());
      fuzz::Check(tensor.status().message().find('\n') == std::string::npos, "a refusal is one line");
      continue;
    }
    Stats stats;
    fuzz::Check(ComputeStats(tensor->view(), &stats), "an array has a known dtype and few dimensions");
    fuzz::Check(stats.count <= static_cast<int64_t>(size), "no more elements than bytes");
  }
  return 0;
}
