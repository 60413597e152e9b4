// statistic.csv, mapping.csv, file names and execution orders of kernel dumps: what is taken has a key and a place,
// refusals are one line.
#include <map>
#include <string>
#include <string_view>

#include "fuzz_file.h"
#include "import/execution_order.h"
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
  ExecutionOrders orders;
  const StatusOr<ExecutionOrder> order = ExecutionOrder::Parse(text, "input");
  if (order.ok()) {
    for (const std::string& scope : order->scopes()) {
      fuzz::Check(order->PlaceOf(KernelFileName(scope)).has_value(), "each kernel is found by the name of its files");
    }
    orders.emplace("Net/0", *order);
  } else {
    fuzz::CheckRefusal(order.status());
  }
  if (const auto iterations = ParseIterations(text, "input"); !iterations.ok()) fuzz::CheckRefusal(iterations.status());
  PlaceKernels(orders, &list);
  for (const KernelTensor& tensor : list.tensors) fuzz::Check(tensor.place < list.tensors.size(), "a place of its own");
  std::map<std::string, std::string> names;
  if (const Status read = ReadLongNames(text, "input", &names); !read.ok()) fuzz::CheckRefusal(read);
  for (const auto& entry : names) {
    KernelTensor listed;
    if (ParseKernelName(entry.second, &listed)) fuzz::Check(listed.key.size() > 3, "a listed name has a key");
  }
  KernelTensor named;
  if (ParseKernelName(text, &named)) fuzz::Check(named.key.size() > 3, "a name has a key");
  return 0;
}
