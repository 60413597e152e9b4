// Files of torch.save(): every tensor that is accepted can be read to its last element.
#include <string_view>

#include "fuzz_file.h"
#include "tensor/files/pt_reader.h"
#include "tensor/kernels/stats.h"

namespace msprobe {
namespace {

void ReadAll(const PtValue& value, int64_t* left) {
  for (const PtValue& item : value.items) ReadAll(item, left);
  if (value.kind != PtValue::Kind::kTensor) return;
  int64_t count = 1;
  for (int64_t n : value.tensor->shape) {
    fuzz::Check(n >= 0, "no dimension is negative");
    if (__builtin_mul_overflow(count, n, &count)) return;
  }
  if ((*left -= count) < 0) return;
  Stats stats;
  fuzz::Check(ComputeStats(value.tensor->view(), &stats), "a tensor has a known dtype and few dimensions");
  fuzz::Check(stats.count == count, "each element is read");
}

}  // namespace
}  // namespace msprobe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const auto file = PtFile::Parse({reinterpret_cast<const char*>(data), size}, "input");
  if (!file.ok()) {
    fuzz::CheckRefusal(file.status());
    fuzz::Check(file.status().message().find('\n') == std::string::npos, "a refusal is one line");
    return 0;
  }
  int64_t left = int64_t{1} << 22;
  ReadAll(file->value(), &left);
  (void)file->VerifyChecksums();
  return 0;
}
