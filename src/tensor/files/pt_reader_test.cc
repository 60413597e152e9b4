#include "tensor/files/pt_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "tensor/files/pt_pickle.h"
#include "tensor/files/pt_writer.h"
#include "tensor/kernels/crc32.h"

namespace msprobe {
namespace {

namespace fs = std::filesystem;

class PtReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/pt_reader_XXXXXX";
    root_ = mkdtemp(pattern);
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string root_;
};

TEST_F(PtReaderTest, ReadsWhatTheWriterWrites) {
  std::vector<unsigned char> memory(16 * 24);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<unsigned char>(i * 7);
  const std::vector<std::vector<int64_t>> shapes = {{}, {0}, {5}, {2, 3}, {2, 0, 3}, {2, 3, 2, 2}};
  for (int d = 0; d < static_cast<int>(DType::kUnknown); ++d) {
    for (const auto& shape : shapes) {
      const auto dtype = static_cast<DType>(d);
      const TensorView view{memory.data(), dtype, static_cast<int>(shape.size()), shape.data(), nullptr};
      const std::string path = root_ + "/t.pt";
      uint64_t bytes = 0;
      ASSERT_TRUE(WritePtFile(path, view, &bytes).ok());
      EXPECT_EQ(bytes, fs::file_size(path));
      const auto file = PtFile::Open(path);
      ASSERT_TRUE(file.ok()) << file.status().message();
      ASSERT_NE(file->tensor(), nullptr);
      const PtTensor& t = *file->tensor();
      EXPECT_EQ(t.dtype, dtype);
      EXPECT_EQ(t.shape, shape);
      EXPECT_FALSE(t.requires_grad);
      EXPECT_EQ(ComputeCrc32(t.view()), ComputeCrc32(view));
      EXPECT_TRUE(file->VerifyChecksums().ok());
      EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data) % 64, 0u);
    }
  }
}

TEST_F(PtReaderTest, ReadsTensorsBeyond4GiB) {
  const std::vector<int64_t> shape = {(int64_t{1} << 32) + 3};
  PtFrame frame;
  ASSERT_TRUE(MakePtFrame(DType::kUInt8, shape, "large", 0, &frame));
  const std::string path = root_ + "/large.pt";
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT, 0640);
  ASSERT_GE(fd, 0);
  const auto end = static_cast<off_t>(frame.head.size() + static_cast<uint64_t>(shape[0]));
  ASSERT_EQ(pwrite(fd, frame.head.data(), frame.head.size(), 0), static_cast<ssize_t>(frame.head.size()));
  ASSERT_EQ(pwrite(fd, "\x07", 1, end - 1), 1);  // all others are a hole
  const ssize_t tail = pwrite(fd, frame.tail.data(), frame.tail.size(), end);
  close(fd);
  if (tail < 0) GTEST_SKIP() << "this file system takes no files of that size";
  const auto file = PtFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_NE(file->tensor(), nullptr);
  EXPECT_EQ(file->tensor()->shape, shape);
  EXPECT_EQ(static_cast<const char*>(file->tensor()->data)[shape[0] - 1], 7);
}

TEST_F(PtReaderTest, DamagedElementsShowInTheChecksum) {
  const std::vector<float> values = {1, 2, 3};
  const int64_t shape[] = {3};
  uint64_t bytes = 0;
  const std::string path = root_ + "/t.pt";
  ASSERT_TRUE(WritePtFile(path, {values.data(), DType::kFloat32, 1, shape, nullptr}, &bytes).ok());
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text[text.find(std::string("\0\0\x80\x3f", 4))] = 1;
  const auto file = PtFile::Parse(text, "t.pt");
  ASSERT_TRUE(file.ok());
  EXPECT_NE(file->VerifyChecksums().message().find("the checksum of t/data/0 is wrong"), std::string::npos);
}

TEST(PtReader, ReadsFilesOfTorch) {
  const std::string corpus = std::string(MSPROBE_SOURCE_DIR) + "/tests/fuzz/corpus/pt/";
  const auto view = PtFile::Open(corpus + "bf16_view.pt");
  ASSERT_TRUE(view.ok()) << view.status().message();
  EXPECT_EQ(view->tensor()->shape, (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(view->tensor()->strides, (std::vector<int64_t>{1, 4}));
  Stats stats;
  ASSERT_TRUE(ComputeStats(view->tensor()->view(), &stats));
  EXPECT_EQ(stats.max, 11);
  EXPECT_EQ(stats.min, 1);

  const auto nested = PtFile::Open(corpus + "nested.pt");
  ASSERT_TRUE(nested.ok()) << nested.status().message();
  const PtValue& dict = nested->value();
  ASSERT_EQ(dict.kind, PtValue::Kind::kDict);
  ASSERT_EQ(dict.items.size(), 4u);
  EXPECT_EQ(dict.items[0].text, "a");
  ASSERT_EQ(dict.items[1].items.size(), 2u);
  const PtValue& tuple = dict.items[1].items[1];
  ASSERT_EQ(tuple.kind, PtValue::Kind::kTuple);
  EXPECT_EQ(tuple.items[0].i, 1);
  EXPECT_EQ(tuple.items[1].d, 2.5);
  EXPECT_EQ(tuple.items[4].text, "x");
  EXPECT_EQ(dict.items[2].i, 3);
  EXPECT_TRUE(dict.items[3].tensor->requires_grad);

  const auto state = PtFile::Open(corpus + "state_dict.pt");
  ASSERT_TRUE(state.ok()) << state.status().message();
  EXPECT_EQ(state->value().items[0].text, "weight");
  const auto sparse = PtFile::Open(corpus + "sparse.pt");
  ASSERT_TRUE(sparse.ok()) << sparse.status().message();
  EXPECT_EQ(sparse->value().kind, PtValue::Kind::kOther);
  EXPECT_EQ(sparse->value().text, "_rebuild_sparse_tensor");
}

TEST(PtReader, ReadsTensorsThatWereSavedOnDevices) {
  const std::string corpus = std::string(MSPROBE_SOURCE_DIR) + "/tests/fuzz/corpus/pt/";
  for (const char* name : {"npu.pt", "npu_format.pt", "device.pt"}) {
    const auto file = PtFile::Open(corpus + name);
    ASSERT_TRUE(file.ok()) << file.status().message();
    ASSERT_NE(file->tensor(), nullptr) << name;
    const PtTensor& t = *file->tensor();
    EXPECT_EQ(t.dtype, DType::kBFloat16);
    EXPECT_EQ(t.shape, (std::vector<int64_t>{2, 3}));
    EXPECT_TRUE(t.requires_grad) << name;
    Stats stats;
    ASSERT_TRUE(ComputeStats(t.view(), &stats));
    EXPECT_EQ(stats.max, 5);
  }
}

TEST(PtReader, RefusesWhatAttacks) {
  // What the refusal says, of the files that must not be read.
  const std::map<std::string, std::string> refused = {
      {"pt_executes.pt", "it names posix.system"},
      {"pt_builtin.pt", "it names builtins.eval"},
      {"pt_control_name.pt", "it names os"},
      {"pt_beyond_storage.pt", "reaches out of its storage"},
      {"pt_offset_beyond.pt", "reaches out of its storage"},
      {"pt_huge_stride.pt", "reaches out of its storage"},
      {"pt_huge_shape.pt", "reaches out of its storage"},
      {"pt_huge_empty.pt", "a shape is too large"},
      {"pt_negative_stride.pt", "not a tuple of numbers"},
      {"pt_negative_offset.pt", "described in a different way"},
      {"pt_many_dims.pt", "not a tuple of numbers"},
      {"pt_missing_storage.pt", "the member of a storage is missing"},
      {"pt_storage_alone.pt", "a storage without a tensor"},
      {"pt_own_list.pt", "nested too deeply"},
      {"pt_laughs.pt", "nested too deeply or too large"},
      {"pt_deep.pt", "nested too deeply"},
      {"pt_marks.pt", "leaves no single value"},
      {"pt_underflow.pt", "a value is missing"},
      {"pt_mark_guard.pt", "a value is missing"},
      {"pt_no_stop.pt", "ends in the middle"},
      {"pt_two_values.pt", "leaves no single value"},
      {"pt_text_size.pt", "ends in the middle"},
      {"pt_long_text.pt", "ends in the middle"},
      {"pt_odd_dict.pt", "a key has no value"},
      {"pt_bad_memo.pt", "a value is missing"},
      {"pt_opcode_inst.pt", "opcode 0x69 is not allowed"},
      {"pt_recursive_type.pt", "described in a different way"},
      {"pt_compressed.pt", "compressed or encrypted"},
      {"pt_two_storages.pt", "two members archive/data/0"},
      {"pt_cut.pt", "its directory is missing"},
      {"pt_big_endian.pt", "big-endian"},
      {"pt_no_pickle.pt", "ends in the middle"},
      {"pt_directory_outside.pt", "lies outside"},
      {"pt_many_members.pt", "too short"},
      {"pt_member_outside.pt", "a member is missing"},
      {"pt_member_size.pt", "a member is cut off"},
      {"pt_name_length.pt", "an entry is cut off"},
      {"pt_large_without_extra.pt", "a member is cut off"},
      {"pt_legacy.pt", "legacy format"},
      {"pt_same_member.pt", "two members overlap"},
      {"pt_members_overlap.pt", "two members overlap"},
      {"pt_member_over_directory.pt", "a member overlaps the directory"},
  };
  const std::vector<std::string> accepted = {"pt_global_value.pt", "pt_broadcast_large.pt"};
  size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(std::string(MSPROBE_SOURCE_DIR) + "/tests/attacks")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("distrib_")) continue;  // what is wrong is what they hold: distributed_optimizer_fuzz
    const auto file = PtFile::Open(entry.path());
    if (!name.starts_with("pt_")) {
      EXPECT_FALSE(file.ok()) << name;
      continue;
    }
    ++seen;
    if (std::find(accepted.begin(), accepted.end(), name) != accepted.end()) {
      EXPECT_TRUE(file.ok()) << name << ": " << file.status().message();
      continue;
    }
    ASSERT_FALSE(file.ok()) << name;
    EXPECT_EQ(file.status().code(), Code::kBadInput) << name;
    const std::string& message = file.status().message();
    for (const char c : message) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << name;
    ASSERT_TRUE(refused.count(name)) << name << ": " << message;
    EXPECT_NE(message.find(refused.at(name)), std::string::npos) << name << ": " << message;
  }
  EXPECT_EQ(seen, refused.size() + accepted.size());
}

TEST(PtReader, MarksAreCounted) {
  const auto none = [](std::string_view) -> const std::string_view* { return nullptr; };
  const auto value = ReadPtPickle(std::string(size_t{3} << 20, '('), none, "x.pt");
  ASSERT_FALSE(value.ok());
  EXPECT_NE(value.status().message().find("too many values"), std::string::npos) << value.status().message();
}

TEST(PtReader, SharedValuesAreWrittenOutWithinBounds) {
  const auto none = [](std::string_view) -> const std::string_view* { return nullptr; };
  const auto list_of = [](std::string_view item, char number) {
    std::string out = "](";
    for (int i = 0; i < 100; ++i) out += item;
    return out + "eq" + number;
  };
  const std::string inner = list_of("N", 0), middle = list_of(std::string("h\0", 2), 1), outer = list_of("h\1", 2);
  // What is on the stack below becomes an item of a tuple.
  const auto few = ReadPtPickle(inner + middle + "\x86.", none, "x.pt");
  ASSERT_TRUE(few.ok()) << few.status().message();
  EXPECT_EQ(few->items[1].items[99].items.size(), 100u);
  const auto many = ReadPtPickle(inner + middle + outer + "\x87.", none, "x.pt");
  ASSERT_FALSE(many.ok());
  EXPECT_NE(many.status().message().find("too large"), std::string::npos) << many.status().message();
}

// A dict of `pairs` pairs, each set by itself behind a number of its own: 1000: {"name": [1000, 7]}, whose list grows
// item by item.
std::string MetadataPickle(int pairs) {
  std::string out = "\x80\x02}q";
  out += std::string(1, '\0') + "X" + std::string("\x04\0\0\0", 4) + "many}q\x01";
  const auto number = [](int n) {
    return std::string("J") + static_cast<char>(n & 255) + static_cast<char>(n >> 8 & 255) +
           static_cast<char>(n >> 16 & 255) + std::string(1, '\0');
  };
  for (int i = 0; i < pairs; ++i) {
    out += number(1000 + i) + "}X" + std::string("\x04\0\0\0", 4) + "name]";
    out += number(1000 + i) +
           "aK\7"
           "ass";
  }
  return out + "s.";
}

TEST(PtPairs, AreMadeOneByOne) {
  constexpr int kPairs = 5000;
  const std::string pickle = MetadataPickle(kPairs);
  auto pairs = PtPairs::Read(pickle, "x");
  ASSERT_TRUE(pairs.ok()) << pairs.status().message();
  int seen = 0;
  const auto take = [&](const PtValue& key, const PtValue& value) {
    EXPECT_EQ(key.i, 1000 + seen);
    EXPECT_EQ(value.kind, PtValue::Kind::kDict);
    const PtItems& list = value.items[1].items;
    EXPECT_EQ(list.size(), 2u);
    EXPECT_EQ(list[0].i, 1000 + seen);
    EXPECT_EQ(list[1].i, 7);
    ++seen;
    return OkStatus();
  };
  const auto found = pairs->ForEach("many", take);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_TRUE(*found);
  EXPECT_EQ(seen, kPairs);
  const auto missing = pairs->ForEach("few", take);
  EXPECT_TRUE(missing.ok() && !*missing);
  EXPECT_FALSE(PtPairs::Read(std::string_view(pickle).substr(0, pickle.size() - 1), "x").ok());
}

}  // namespace
}  // namespace msprobe
