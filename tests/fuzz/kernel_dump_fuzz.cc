// statistic.csv and file names of kernel dumps: what is taken has a key, refusals are one line.
#include <string_view>

#include "fuzz_file.h"
#include "import/kernel_dump.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  KernelList list;
  const Status status = ReadKernelLines(text, "input", "Net/0", &list);
  if (!status.ok()) {
    fuzz::CheckRefusal(status);
    fuzz::Check(status.message().find('\n') == std::string::npos, "a refusal is one line");
  }
  for (const KernelTensor& tensor : list.tensors) fuzz::Check(tensor.key.size() > 3, "a kernel has a key");
  KernelTensor named;
  if (ParseKernelName(text, &named)) fuzz::Check(named.key.size() > 3, "a name has a key");
  return 0;
}
