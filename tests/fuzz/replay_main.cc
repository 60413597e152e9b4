// Runs a fuzz target over files and directories given as arguments: the corpus and the attack files as an ordinary
// test.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "fuzz_file.h"

namespace {

bool Replay(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  if (!in.good() && !in.eof()) return false;
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  size_t files = 0;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      files += Replay(argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      if (entry.is_regular_file()) files += Replay(entry.path());
    }
  }
  std::printf("%zu files\n", files);
  return files > 0 ? 0 : 1;
}
