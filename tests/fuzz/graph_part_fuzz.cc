// What one process hands to another about the graphs that it has built.
#include <vector>

#include "fuzz_file.h"
#include "graph/build/graph_part.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  // A copy of the exact size, so that a read behind the end is seen.
  const std::vector<char> exact(data, data + size);
  const StatusOr<GraphPart> part = UnpackGraphPart({exact.data(), exact.size()});
  if (part.ok()) fuzz::Check(PackGraphPart(*part).size() == size, "a part is as long as its bytes");
  return 0;
}
