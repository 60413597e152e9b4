// Files of --config: what is accepted names matrices, what is refused says so in one line.
#include "compare/values/postprocess.h"
#include "fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const fuzz::MemoryFile file(data, size);
  const auto read = Postprocess::Read(file.path());
  if (!read.ok()) {
    fuzz::CheckRefusal(read.status());
    fuzz::Check(read.status().message().find('\n') == std::string::npos, "a refusal is one line");
    return 0;
  }
  const std::vector<std::string> names = (*read)->Unused();
  fuzz::Check(!names.empty(), "a file that names no tensor is refused");
  for (const std::string& name : names) {
    const auto* target = (*read)->TargetSteps(name);
    const auto* golden = (*read)->GoldenSteps(name);
    fuzz::Check((target && !target->empty()) || (golden && !golden->empty()), "a name has a matrix");
  }
  fuzz::Check((*read)->Unused().empty(), "all names are used now");
  return 0;
}
