// Dumps of Ascend's kernels: a tensor that is accepted can be read to its last element, in the order of the device and
// of the host; records of overflows become JSON or a refusal of one line.
#include <string_view>

#include "fuzz_file.h"
#include "import/adump_layout.h"
#include "import/opdebug.h"
#include "tensor/files/adump_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto refused = [](const Status& status) {
    fuzz::CheckRefusal(status);
    fuzz::Check(status.message().find('\n') == std::string::npos, "a refusal is one line");
  };
  if (const auto json = OpdebugJson(bytes, "input"); !json.ok()) refused(json.status());
  const auto file = ReadAdump(bytes, "input");
  if (!file.ok()) {
    refused(file.status());
    return 0;
  }
  for (const AdumpTensor& tensor : file->tensors) {
    if (tensor.output) {
      if (const auto json = OpdebugJson(tensor.bytes, "input"); !json.ok()) refused(json.status());
    }
    if (!tensor.why.empty()) continue;
    Stats stats;
    fuzz::Check(ComputeStats(tensor.tensor.view(), &stats), "a tensor has a known dtype and few dimensions");
    fuzz::Check(stats.count <= static_cast<int64_t>(size), "no more elements than bytes");
    const HostTensor host = ToHost(tensor);
    fuzz::Check(host.copy.size() <= size, "no more memory than the file");
    fuzz::Check(ComputeStats(host.tensor.view(), &stats), "a tensor of the host can be read");
  }
  return 0;
}
