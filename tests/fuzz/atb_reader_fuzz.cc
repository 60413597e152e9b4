// Tensor files of ATB: a tensor that is accepted can be read to its last element.
#include <string_view>

#include "fuzz_file.h"
#include "tensor/files/atb_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const auto tensor = ReadAtb({reinterpret_cast<const char*>(data), size}, "input");
  if (!tensor.ok()) {
    fuzz::CheckRefusal(tensor.status());
    fuzz::Check(tensor.status().message().find('\n') == std::string::npos, "a refusal is one line");
    return 0;
  }
  Stats stats;
  fuzz::Check(ComputeStats(tensor->view(), &stats), "a tensor has a known dtype and few dimensions");
  fuzz::Check(stats.count <= static_cast<int64_t>(size), "no more elements than bytes");
  return 0;
}
