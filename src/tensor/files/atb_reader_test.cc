#include "tensor/files/atb_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "base/file.h"

namespace msprobe {
namespace {

const std::string kAtbRoot = MSPROBE_SOURCE_DIR "/tests/";

TEST(AtbReader, ReadsEachType) {
  const auto read = [](const char* name) {
    auto map = MappedFile::Open(kAtbRoot + "fuzz/corpus/atb/" + name);
    EXPECT_TRUE(map.ok()) << name;
    auto tensor = ReadAtb(map->text(), name);
    EXPECT_TRUE(tensor.ok()) << tensor.status().message();
    Stats stats;
    EXPECT_TRUE(ComputeStats(tensor->view(), &stats));
    return std::pair(*tensor, stats);
  };
  const auto [floats, f] = read("f4.bin");
  EXPECT_EQ(floats.dtype, DType::kFloat32);
  EXPECT_EQ(floats.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(f.nan_count, 1);
  EXPECT_EQ(read("i8.bin").second.int_max, int64_t{1} << 60);
  EXPECT_EQ(read("bf16.bin").second.inf_count, 1);
  EXPECT_EQ(read("bool.bin").first.dtype, DType::kBool);
  EXPECT_EQ(read("half.bin").second.max, 1);
  EXPECT_EQ(read("empty.bin").second.count, 0);
}

TEST(AtbReader, RefusesWhatAttacks) {
  const std::map<std::string, std::string> refused = {
      {"no_end", "its header has no end"},
      {"cut", "it holds 23 bytes"},
      {"more", "it holds 25 bytes"},
      {"negative", "its dims are not a list"},
      {"huge_shape", "its dims give a different number"},
      {"hidden_product", "its dims give a different number"},
      {"over_64", "its dims are not a list"},
      {"many_dims", "its dims are not a list"},
      {"dims_comma", "its dims are not a list"},
      {"dtype", "dtype 77 is not known"},
      {"dtype_text", "its dtype is not a number"},
      {"other_file", "its values are in a different file"},
      {"two_equals", "without \"key=value\""},
      {"no_equals", "without \"key=value\""},
      {"long_header", "its header has no end"},
      {"no_dims", "its dims give a different number"},
      {"no_dtype", "dtype -1 is not known"},
  };
  size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kAtbRoot + "attacks")) {
    const std::string name = entry.path().stem().string();
    if (name.rfind("atb_", 0) != 0) continue;
    ++seen;
    const auto map = MappedFile::Open(entry.path().string());
    ASSERT_TRUE(map.ok());
    const auto tensor = ReadAtb(map->text(), name);
    ASSERT_FALSE(tensor.ok()) << name;
    EXPECT_EQ(tensor.status().code(), Code::kBadInput);
    ASSERT_TRUE(refused.count(name.substr(4))) << name << ": " << tensor.status().message();
    EXPECT_NE(tensor.status().message().find(refused.at(name.substr(4))), std::string::npos)
        << name << ": " << tensor.status().message();
  }
  EXPECT_EQ(seen, refused.size());
}

}  // namespace
}  // namespace msprobe
