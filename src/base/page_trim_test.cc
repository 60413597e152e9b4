#include "base/page_trim.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/file.h"

namespace msprobe {
namespace {

constexpr size_t kBytes = size_t{160} << 20;

size_t FilePages() {
  std::ifstream file("/proc/self/statm");
  size_t size = 0, resident = 0, shared = 0;
  file >> size >> resident >> shared;
  return shared * 4096;
}

TEST(PageTrim, GivesPagesBackAndTheyCanBeReadAgain) {
  const std::string path = testing::TempDir() + "page_trim_test";
  std::ofstream(path) << "x";
  std::filesystem::resize_file(path, kBytes);
  {
    const auto map = MappedFile::Open(path);
    ASSERT_TRUE(map.ok());
    size_t sum = 0;
    for (size_t i = 0; i < kBytes; i += 4096) sum += static_cast<size_t>(map->text()[i]);
    EXPECT_EQ(sum, size_t{'x'});
    bool trimmed = false;
    for (int look = 0; look < 3000 && !trimmed; ++look) {
      trimmed = FilePages() < kBytes / 2;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    EXPECT_TRUE(trimmed);
    EXPECT_EQ(map->text()[0], 'x');
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace msprobe
