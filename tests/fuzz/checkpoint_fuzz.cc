// Checkpoints of one file, and the metadata of torch.distributed: every tensor that is accepted is whole and can be
// read.
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz_file.h"
#include "weights/open_checkpoint.h"
#include "weights/roles.h"

namespace msprobe {
namespace {

constexpr int64_t kMostRead = int64_t{1} << 20;

void ReadCheckpoint(const std::string& path) {
  const auto checkpoint = OpenCheckpoint(path);
  if (!checkpoint.ok()) {
    fuzz::CheckRefusal(checkpoint.status());
    return;
  }
  std::vector<char> bytes;
  for (const auto* tensors : {&checkpoint->tensors, &checkpoint->optimizer}) {
    for (const WeightTensor& t : *tensors) {
      fuzz::Check(IsCovered(t), "each element lies in one block");
      const int64_t count = std::min(t.elements(), kMostRead);
      bytes.resize(static_cast<size_t>(count) * ElementSize(t.dtype));
      if (count > 0 && t.blocks.size() < 64) GatherElements(t, 0, count, bytes.data());
    }
  }
  if (checkpoint->tensors.size() < 256) (void)RolesOf(*checkpoint);
}

/// A directory of this process with nothing but .metadata and one file of elements.
const std::string& MetadataDirectory() {
  static const std::string kDirectory = [] {
    char pattern[] = "/tmp/checkpoint_fuzz_XXXXXX";
    const std::string directory = mkdtemp(pattern);
    std::ofstream(directory + "/__0_0.distcp") << std::string(256, '\0');
    return directory;
  }();
  return kDirectory;
}

}  // namespace
}  // namespace msprobe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const int fd = memfd_create("checkpoint", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != static_cast<ssize_t>(size)) return 0;
  ReadCheckpoint("/proc/self/fd/" + std::to_string(fd));
  close(fd);
  if (text.starts_with('\x80')) {
    std::ofstream(MetadataDirectory() + "/.metadata", std::ios::binary) << text;
    ReadCheckpoint(MetadataDirectory());
  }
  return 0;
}
