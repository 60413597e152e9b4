#include "import/kernel_dump.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

std::string KeyOf(std::string_view name) {
  KernelTensor tensor;
  return ParseKernelName(name, &tensor) ? tensor.key + "@" + std::to_string(tensor.time) : "";
}

TEST(KernelNames, OldAndNewForms) {
  const std::string begin = "MatMul.Default_fc-op0.3.7.1795252203942667";
  EXPECT_EQ(KeyOf(begin + ".input.0.DefaultFormat.Float32.npy"), "Default_fc-op0.3.input.0@1795252203942667");
  EXPECT_EQ(KeyOf(begin + ".output.12.DefaultFormat.npy"), "Default_fc-op0.3.output.12@1795252203942667");
  EXPECT_EQ(KeyOf(begin + ".25.output.1.NCHW.npy"), "Default_fc-op0.3.output.1@1795252203942667") << "a fraction";
}

TEST(KernelNames, OthersAreNone) {
  for (const char* name :
       {"", ".npy", "....npy", "12345.npy", "a.b.0.0.1.input.npy", "a.b.0.0.1.input.0.npy", "a.b.0.0.x.input.0.F.npy",
        "a.b.0.0.1.middle.0.F.npy", "a.b.0.0.1.input.x.F.npy", "a..0.0.1.input.0.F.npy", "a.b.0.0.1.input.0.F",
        "a.b.0.0.99999999999999999999999.input.0.F.npy", "a.b.0.0.1.2.3.4.npy"}) {
    EXPECT_EQ(KeyOf(name), "") << name;
  }
}

TEST(KernelStatistics, ColumnsGoByTheirTitles) {
  constexpr char kText[] =
      "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,L2Norm Value,Count,Max Value\n"
      "MatMul,fc,0,0,5,output,2,8,float16,\"(2,3)\",9.5,6,4\n"
      "MatMul,fc,0,0,soon,output,2,8,float16,\"(2,3)\",9.5,6,4\n"
      "MatMul,fc\n"
      "MatMul,fc,0,0,6,output,2,8,float16,()\n";
  KernelList list;
  ASSERT_TRUE(ReadKernelLines(kText, "statistic.csv", "Net/0", &list).ok());
  EXPECT_EQ(list.passed_over, 2u);
  ASSERT_EQ(list.tensors.size(), 2u);
  const KernelTensor& t = list.tensors[0];
  EXPECT_EQ(t.key, "fc.0.output.2");
  EXPECT_EQ(t.time, 5u);
  EXPECT_EQ(t.shape, "(2,3)");
  EXPECT_EQ(t.stats[0], "4");
  EXPECT_EQ(t.stats[1], "");
  EXPECT_EQ(t.stats[3], "9.5");
  EXPECT_EQ(list.tensors[1].stats[3], "");
  EXPECT_FALSE(ReadKernelLines("", "statistic.csv", "Net/0", &list).ok());
}

/// As the C++ part of releases 8.x writes it: other titles, the format of the device, shapes without quotes, checksums.
TEST(KernelStatistics, ReleasesEight) {
  constexpr char kText[] =
      "Op Type,Op Name,Task ID,Stream ID,Timestamp,Input/Output,Slot,Data Size,Data Type,Format,Shape,Max Value,"
      "Min Value,Avg Value,L2Norm Value,NaN Count,Negative Inf Count,Positive Inf Count,MD5 Value\n"
      "MatMul,fc,1,7,5,input,0,24,FLOAT,FRACTAL_NZ,(2,3),4,-1,2,3,0,1,0,0cc175b9\n"
      "MatMul,fc,1,7,5,input,1,4,FLOAT,ND,(1),5,5,5,5,0,0,0,92eb5ffe\n"
      "MatMul,fc,1,7,5,output,0,4,BF16,ND,(),6,6,6,6,0,0,0,4a8a08f0\n"
      "MatMul,fc,1,7,5,output,1,96,INT32,ND,2x3x4,7,6,5,4\n"
      "MatMul,fc,1,7,5,output,2,24,FLOAT,ND,(2,3\n";
  KernelList list;
  ASSERT_TRUE(ReadKernelLines(kText, "statistic.csv", "", &list).ok());
  EXPECT_EQ(list.passed_over, 1u) << "a line that ends in its shape";
  ASSERT_EQ(list.tensors.size(), 4u);
  const KernelTensor& t = list.tensors[0];
  EXPECT_EQ(t.key, "fc.1.input.0");
  EXPECT_EQ(t.dtype, "FLOAT");
  EXPECT_EQ(t.shape, "(2,3)");
  EXPECT_EQ(t.stats, (std::array<std::string, kKernelStats>{"4", "-1", "2", "3"}));
  EXPECT_EQ(t.checksum, "0cc175b9");
  EXPECT_EQ(list.tensors[1].shape, "(1)");
  EXPECT_EQ(list.tensors[1].checksum, "92eb5ffe");
  EXPECT_EQ(list.tensors[2].stats[3], "6");
  EXPECT_EQ(list.tensors[3].shape, "2x3x4");
  EXPECT_EQ(list.tensors[3].stats[3], "4");
  EXPECT_EQ(list.tensors[3].checksum, "");
}

}  // namespace
}  // namespace msprobe
