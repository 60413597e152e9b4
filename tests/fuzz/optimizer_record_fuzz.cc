// Records of optimizers: a description, a byte 0, a file of tensors that stands for before and after the step.
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <string_view>

#include "fuzz_file.h"
#include "optimizer/compare_records.h"
#include "optimizer/replay_optimizer.h"

namespace {

/// A directory of this process for one step.
const std::string& RecordDirectory() {
  static const std::string kDirectory = [] {
    char pattern[] = "/tmp/optimizer_fuzz_XXXXXX";
    std::string directory = mkdtemp(pattern);
    mkdir((directory + "/step0").c_str(), 0700);
    return directory;
  }();
  return kDirectory;
}

void WriteFile(const std::string& name, std::string_view text) {
  std::ofstream(RecordDirectory() + "/step0/" + name, std::ios::binary)
      .write(text.data(), static_cast<std::streamsize>(text.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const size_t zero = std::min(text.find('\0'), size);
  WriteFile("optimizer.json", text.substr(0, zero));
  const std::string_view tensors = text.substr(std::min(zero + 1, size));
  WriteFile("before.safetensors", tensors);
  WriteFile("after.safetensors", tensors);
  const auto record = ReadOptimizerRecord(RecordDirectory(), {});
  if (!record.ok()) {
    fuzz::CheckRefusal(record.status());
    return 0;
  }
  if (const auto replay = ReplayOptimizer(*record); replay.ok()) {
    fuzz::Check(!replay->weights.empty(), "a replay has weights");
  } else {
    fuzz::CheckRefusal(replay.status());
  }
  (void)CompareRecords(*record, *record);
  return 0;
}
