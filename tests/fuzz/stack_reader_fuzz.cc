// stack.json in both forms.
#include "dump/reader.h"
#include "fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const fuzz::MemoryFile file(data, size);
  const auto stacks = StackFile::Open(file.path());
  if (!stacks.ok()) {
    fuzz::CheckRefusal(stacks.status());
    return 0;
  }
  size_t bytes = 0;
  for (uint32_t id = 0; id < stacks->size(); ++id) {
    for (const std::string& frame : stacks->Frames(id)) bytes += frame.size();
  }
  fuzz::Check(bytes <= size * 3, "frames are no longer than their text");
  for (const char* op : {"a", "Functional.relu.0.forward"}) {
    if (const auto id = stacks->StackOf(op)) fuzz::Check(*id < stacks->size(), "an id names a stack");
  }
  return 0;
}
