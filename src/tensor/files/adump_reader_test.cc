#include "tensor/files/adump_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/file.h"
#include "tensor/files/tensor_file.h"

namespace msprobe {
namespace {

const std::string kRoot = MSPROBE_SOURCE_DIR "/tests/";
using Shape = std::vector<int64_t>;

TEST(AdumpReader, ReadsInputsOutputsAndBuffers) {
  const auto map = MappedFile::Open(kRoot + "fuzz/corpus/adump/conv2d.bin");
  ASSERT_TRUE(map.ok());
  const auto file = ReadAdump(map->text(), "conv2d");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->op_name, "Default/network/conv/Conv2D-op0");
  ASSERT_EQ(file->tensors.size(), 3u);
  EXPECT_EQ(file->tensors[0].format, AscendFormat::kNc1hwc0);
  EXPECT_EQ(file->tensors[0].tensor.shape, (Shape{1, 2, 3, 3, 16}));
  EXPECT_EQ(file->tensors[0].original_shape, (Shape{1, 20, 3, 3}));
  EXPECT_EQ(file->tensors[1].tensor.dtype, DType::kFloat16);
  EXPECT_EQ(file->tensors[1].tensor.name, "input.1");
  EXPECT_TRUE(file->tensors[2].output);
  ASSERT_EQ(file->buffers.size(), 1u);
  EXPECT_EQ(file->buffers[0].bytes.substr(0, 4), "\x01\x02\x03\x04");
}

TEST(AdumpReader, ReadsEachTypeAndZeroForm) {
  const auto file = TensorFile::Open(kRoot + "fuzz/corpus/adump/cast.bin");
  ASSERT_TRUE(file.ok()) << file.status().message();
  std::vector<DType> types;
  for (const FileTensor& t : file->tensors()) types.push_back(t.dtype);
  EXPECT_EQ(types, (std::vector<DType>{DType::kBFloat16, DType::kInt64, DType::kBool, DType::kFloat32, DType::kFloat32,
                                       DType::kInt8, DType::kUInt8, DType::kFloat64, DType::kUInt64}));
  EXPECT_EQ(file->tensors()[3].shape, (Shape{0, 3}));
  EXPECT_EQ(file->tensors()[4].shape, Shape());
}

TEST(AdumpReader, RefusesWhatAttacks) {
  // "": the file is read, and its tensor says why it is not.
  const std::map<std::string, std::string> refused = {
      {"cut", "it ends before its values"},
      {"long_header", "behind the end of the file"},
      {"header_zero", "an impossible length"},
      {"many_dims", "its header is damaged"},
      {"negative", "its header is damaged"},
      {"member_beyond", "its header is damaged"},
      {"endless_number", "header is damaged"},
      {"bad_wire", "its header is damaged"},
      {"size_overflows", "it ends before"},
      {"huge_shape", ""},
      {"hidden_product", ""},
      {"type", ""},
      {"padded", ""},
  };
  size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot + "attacks")) {
    const std::string name = entry.path().stem().string();
    if (name.rfind("adump_", 0) != 0 || !refused.count(name.substr(6))) continue;
    ++seen;
    const auto map = MappedFile::Open(entry.path().string());
    ASSERT_TRUE(map.ok());
    const std::string& why = refused.at(name.substr(6));
    const auto file = ReadAdump(map->text(), name);
    if (why.empty()) {
      ASSERT_TRUE(file.ok()) << name << ": " << file.status().message();
      EXPECT_FALSE(file->tensors.at(0).why.empty()) << name;
      const auto opened = TensorFile::Open(entry.path().string());
      ASSERT_FALSE(opened.ok()) << name;
      EXPECT_NE(opened.status().message().find(file->tensors[0].why.English()), std::string::npos) << name;
      continue;
    }
    ASSERT_FALSE(file.ok()) << name;
    EXPECT_EQ(file.status().code(), Code::kBadInput);
    EXPECT_NE(file.status().message().find(why), std::string::npos) << name << ": " << file.status().message();
  }
  EXPECT_EQ(seen, refused.size());
}

}  // namespace
}  // namespace msprobe
