#include "tensor/files/tensor_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "tensor/files/npy_reader.h"
#include "tensor/files/pt_writer.h"
#include "tensor/files/safetensors.h"
#include "tensor/kernels/crc32.h"

namespace msprobe {
namespace {

namespace fs = std::filesystem;

const std::string kCorpus = std::string(MSPROBE_SOURCE_DIR) + "/tests/fuzz/corpus/";
const std::string kAttacks = std::string(MSPROBE_SOURCE_DIR) + "/tests/attacks";

class TensorFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/tensor_file_XXXXXX";
    root_ = mkdtemp(pattern);
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string root_;
};

template <typename T>
T At(const FileTensor& t, size_t i) {
  T v;
  std::memcpy(&v, static_cast<const char*>(t.data) + i * sizeof v, sizeof v);
  return v;
}

TEST_F(TensorFileTest, ReadsEachFormatByItsFirstBytes) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> shape = {2, 3};
  const TensorView view{values.data(), DType::kFloat32, 2, shape.data(), nullptr};
  uint64_t bytes = 0;
  ASSERT_TRUE(WritePtFile(root_ + "/a", view, &bytes).ok());
  ASSERT_TRUE(WriteSafetensors(root_ + "/b", {{"w", view}}).ok());
  for (const std::string& path : {root_ + "/a", root_ + "/b", kCorpus + "npy/f4.npy"}) {
    const auto file = TensorFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    ASSERT_NE(file->tensor(), nullptr);
    EXPECT_EQ(file->tensor()->shape, shape);
    EXPECT_EQ(file->tensor()->dtype, DType::kFloat32);
    EXPECT_EQ(ComputeCrc32(file->tensor()->view()) == ComputeCrc32(view), !path.ends_with(".npy"));
    file->Release(file->tensor()->data, 24);
    file->Release(values.data(), 24);  // memory of others is left alone
    EXPECT_EQ(values[5], 6);
  }
  EXPECT_EQ(TensorFile::Open(root_ + "/none").status().code(), Code::kBadInput);
}

TEST_F(TensorFileTest, NamesOfContainers) {
  const auto file = TensorFile::Open(kCorpus + "pt/nested.pt");
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->tensors().size(), 2u);
  EXPECT_EQ(file->tensors()[0].name, "a.0");
  EXPECT_EQ(file->tensors()[1].name, "3");
  EXPECT_TRUE(file->tensors()[1].requires_grad);
  EXPECT_EQ(file->tensor(), nullptr);
}

TEST_F(TensorFileTest, WritesSafetensorsOfEachType) {
  std::vector<char> memory(1000);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<char>(i * 7);
  const int64_t shape[] = {3, 4}, strides[] = {1, 3};
  std::vector<NamedTensor> tensors;
  for (int d = 0; d < static_cast<int>(DType::kUnknown); ++d) {
    const auto dtype = static_cast<DType>(d);
    const NamedTensor tensor{std::string(DTypeName(dtype)) + "\n\"é", {memory.data(), dtype, 2, shape, strides}};
    if (dtype == DType::kComplex32 || dtype == DType::kComplex128) {
      EXPECT_EQ(WriteSafetensors(root_ + "/t", {tensor}).code(), Code::kBadInput);
    } else {
      tensors.push_back(tensor);
    }
  }
  const std::string path = root_ + "/all.safetensors";
  ASSERT_TRUE(WriteSafetensors(path, tensors).ok());
  const auto file = TensorFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->tensors().size(), tensors.size());
  for (const FileTensor& t : file->tensors()) {
    const auto written = std::find_if(tensors.begin(), tensors.end(), [&](const auto& w) { return w.name == t.name; });
    ASSERT_NE(written, tensors.end()) << t.name;
    EXPECT_EQ(t.dtype, written->view.dtype);
    EXPECT_EQ(t.shape, (std::vector<int64_t>{3, 4}));
    EXPECT_EQ(ComputeCrc32(t.view()), ComputeCrc32(written->view)) << t.name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data) % ElementSize(t.dtype), 0u) << t.name;
  }
  EXPECT_EQ(WriteSafetensors(path, {tensors[0], tensors[0]}).code(), Code::kBadInput);
  EXPECT_TRUE(WriteSafetensors(path, {}).ok());
  EXPECT_TRUE(TensorFile::Open(path)->tensors().empty());
}

TEST(NpyReader, ReadsWhatNumpyWrites) {
  const auto read = [](const std::string& name, DType dtype = DType::kUnknown) {
    auto file = TensorFile::Open(kCorpus + "npy/" + name, dtype);
    EXPECT_TRUE(file.ok()) << file.status().message();
    return std::move(*file);
  };
  const auto fortran = read("fortran.npy");
  EXPECT_EQ(fortran.tensor()->strides, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(At<double>(*fortran.tensor(), 1), 3);
  EXPECT_EQ(read("scalar.npy").tensor()->shape, std::vector<int64_t>());
  EXPECT_EQ(read("scalar.npy").tensor()->dtype, DType::kFloat16);
  EXPECT_EQ(read("empty.npy").tensor()->shape, (std::vector<int64_t>{2, 0, 3}));
  EXPECT_EQ(read("bool.npy").tensor()->dtype, DType::kBool);
  EXPECT_EQ(read("complex.npy").tensor()->dtype, DType::kComplex128);
  EXPECT_EQ(At<int32_t>(*read("version2.npy").tensor(), 2), 2);
  EXPECT_EQ(At<int32_t>(*read("version3.npy").tensor(), 2), 2);
  // numpy has no name for bfloat16.
  EXPECT_EQ(read("void2.npy").tensor()->dtype, DType::kBFloat16);
  EXPECT_EQ(read("void2.npy", DType::kFloat16).tensor()->dtype, DType::kFloat16);
  EXPECT_EQ(read("void2.npy", DType::kFloat32).tensor()->dtype, DType::kBFloat16);
}

TEST(Safetensors, ReadsWhatOthersWrite) {
  const auto two = TensorFile::Open(kCorpus + "safetensors/two.safetensors");
  ASSERT_TRUE(two.ok()) << two.status().message();
  ASSERT_EQ(two->tensors().size(), 2u);
  const auto mixed = TensorFile::Open(kCorpus + "safetensors/mixed.safetensors");
  ASSERT_TRUE(mixed.ok()) << mixed.status().message();
  ASSERT_EQ(mixed->tensors().size(), 3u);
  EXPECT_EQ(mixed->tensors()[0].dtype, DType::kBFloat16);
  EXPECT_EQ(mixed->tensors()[1].shape, std::vector<int64_t>{0});
  EXPECT_EQ(mixed->tensors()[2].dtype, DType::kFloat8E4M3FN);
  EXPECT_TRUE(mixed->tensors()[2].shape.empty());
}

/// What the refusal says, of the attack files whose names begin with `prefix`.
void CheckRefusals(const std::string& prefix, const std::map<std::string, std::string>& refused) {
  size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(kAttacks)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(prefix)) continue;
    ++seen;
    const auto file = TensorFile::Open(entry.path());
    ASSERT_FALSE(file.ok()) << name;
    EXPECT_EQ(file.status().code(), Code::kBadInput) << name;
    const std::string& message = file.status().message();
    EXPECT_LT(message.size(), 500u) << name;
    for (const char c : message) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << name;
    const std::string stem = entry.path().stem().string().substr(prefix.size());
    ASSERT_TRUE(refused.count(stem)) << name << ": " << message;
    EXPECT_NE(message.find(refused.at(stem)), std::string::npos) << name << ": " << message;
  }
  EXPECT_EQ(seen, refused.size());
}

TEST(NpyReader, RefusesWhatAttacks) {
  CheckRefusals("npy_", {
                            {"object", "Python objects"},
                            {"big_endian", "big-endian"},
                            {"records", "it holds records"},
                            {"text", "its type <U8 is not read"},
                            {"huge_shape", "more bytes than the file has"},
                            {"beyond_shape", "header of the .npy file is damaged"},
                            {"product", "more bytes than the file has"},
                            {"hidden_product", "more bytes than the file has"},
                            {"negative", "is damaged"},
                            {"many_dims", "is damaged"},
                            {"cut", "more bytes than the file has"},
                            {"extra", "bytes follow its last element"},
                            {"version", "version of the .npy format is unknown"},
                            {"header_length", "is damaged"},
                            {"header_huge", "is damaged"},
                            {"code", "is damaged"},
                            {"twice", "is damaged"},
                            {"missing", "is damaged"},
                            {"other_key", "is damaged"},
                            {"void", "a type that numpy does not name"},
                            {"void_size", "its type |V3 is not read"},
                            {"deep", "is damaged"},
                            {"open_quote", "is damaged"},
                            {"control", "its type \\x1b[31m\\n is not read"},
                            {"magic", "is damaged"},
                        });
}

TEST(Safetensors, RefusesWhatAttacks) {
  CheckRefusals("st_", {
                           {"header_2_63", "larger than 100 MB"},
                           {"header_beyond", "ends in its header"},
                           {"header_large", "larger than 100 MB"},
                           {"overlap", "overlap those of another"},
                           {"same_bytes", "overlap those of another"},
                           {"gap", "belong to no tensor"},
                           {"tail", "belong to no tensor"},
                           {"outside", "lie outside of the file"},
                           {"reversed", "belong to no tensor"},
                           {"shape_mismatch", "does not fit its bytes"},
                           {"huge_shape", "does not fit its bytes"},
                           {"beyond_shape", "not a whole number"},
                           {"product", "does not fit its bytes"},
                           {"hidden_product", "does not fit its bytes"},
                           {"negative_shape", "not a whole number"},
                           {"negative_offset", "not a whole number"},
                           {"offset_2_64", "belong to no tensor"},
                           {"three_offsets", "the header is damaged"},
                           {"float_size", "not a whole number"},
                           {"twice", "the name a comes twice"},
                           {"key_twice", "the name dtype comes twice"},
                           {"other_key", "a key that the format does not know"},
                           {"no_dtype", "lacks its description"},
                           {"dtype", "the type F4\\x1b[31m is not read"},
                           {"deep", "the header is damaged"},
                           {"deep_arrays", "the header is damaged"},
                           {"metadata_object", "the header is damaged"},
                           {"not_utf8", "the header is damaged"},
                           {"surrogate", "the header is damaged"},
                           {"open_name", "the header is damaged"},
                           {"text_behind", "text follows the header"},
                           {"many_dims", "a shape is too large"},
                           {"cut", "the header is damaged"},
                       });
}

}  // namespace
}  // namespace msprobe
