// The figures of the standards are those of mindstudio-probe's classes: recorded answers (tests/golden/standards).
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "lab/standards/status.h"

namespace msprobe {
namespace {

constexpr uint64_t kOfCase = 0xFFFFF;
constexpr int kSizes[] = {1, 2, 5, 7, 8, 9, 31, 100, 128, 129, 300, 1025};
constexpr const char* kNames[] = {"softmax", "mul", "abs", "matmul", "conv2d", "layer_norm"};

uint64_t Drawn(uint64_t which, uint64_t element, uint64_t draw) {
  uint64_t z = (which << 32 | element << 8 | draw) + 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}
uint64_t Below(uint64_t which, uint64_t draw, uint64_t n) { return Drawn(which, kOfCase, draw) % n; }

double RoundToBFloat16(double v) {
  const auto single = static_cast<float>(v);
  if (std::isnan(single)) return v;
  const auto bits = std::bit_cast<uint32_t>(single);
  return static_cast<double>(std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000));
}

/// As pair() of tests/golden/standards/old_answers.py.
ResultPair GeneratedPair(uint64_t which, std::string* name) {
  const uint64_t kind = Below(which, 0, 3), mode = Below(which, 2, 10);
  const int n = kSizes[Below(which, 1, std::size(kSizes))];
  const int base = kind == 0 ? static_cast<int>(Below(which, 3, 20)) - 14 : static_cast<int>(Below(which, 3, 40)) - 20;
  const bool wide = kind == 2 && Below(which, 4, 5) != 0;
  ResultPair out;
  out.device.dtype = kind == 0 ? DType::kFloat16 : kind == 1 ? DType::kBFloat16 : DType::kFloat32;
  out.bench.dtype = wide ? DType::kFloat64 : DType::kFloat32;
  for (int at = 0; at < n; ++at) {
    const auto i = static_cast<uint64_t>(at);
    const int power = base - static_cast<int>(Drawn(which, i, 0) % 12) - (mode == 5 ? 16 : 0);
    double value = std::ldexp(static_cast<double>(Drawn(which, i, 1) % (1 << 24)) - (1 << 23), power - 23);
    if (wide) value += std::ldexp(static_cast<double>(Drawn(which, i, 2) % (1 << 20)), power - 50);
    double bench = wide ? value : static_cast<double>(static_cast<float>(value));
    const double error =
        std::ldexp(static_cast<double>(Drawn(which, i, 3) % 2049) - 1024, -10 - static_cast<int>(Below(which, 5, 20)));
    double device = Below(which, 6, 5) == 0 ? value : value + value * error;
    const bool special = Drawn(which, i, 4) % 8 == 0;
    if (mode == 0 && special) device = NAN;
    if (mode == 1 && special) device = bench = INFINITY;
    if (mode == 2 && special) device = -INFINITY;
    if (mode == 3 && special) bench = 0;
    if (mode == 4) device *= 0, bench *= 0;
    device = kind == 0   ? RoundToHalf(device)
             : kind == 1 ? RoundToBFloat16(device)
                         : static_cast<double>(static_cast<float>(device));
    out.device.values.push_back(device);
    out.bench.values.push_back(bench);
  }
  *name = kNames[Below(which, 7, std::size(kNames))];
  return out;
}

FigureRow Measured(const std::string& what, const std::string& api, const ResultPair& pair, StandardRelease release,
                   std::string* status) {
  *status = " ";
  if (what == "check") {
    const CheckedOutput checked = CheckFloats(api, pair, false, release);
    *status = LabStatusText(checked.status);
    return checked.row;
  }
  static const std::map<std::string, Standard> standards = {
      {"benchmark", Standard::kBenchmark},   {"absolute", Standard::kAbsolute},
      {"binary", Standard::kBinary},         {"ulp", Standard::kUlp},
      {"thousandth", Standard::kThousandth}, {"accumulative", Standard::kAccumulative}};
  FigureRow row;
  const ResultErrors errors(pair);
  MeasureByStandard(standards.at(what), errors, &row);
  return row;
}

/// numpy leaves the order of the sums of a cosine to its BLAS.
bool SameCell(size_t column, const std::string& ours, const std::string& theirs) {
  if (ours == theirs) return true;
  if (column != 0) return false;
  return std::fabs(std::strtod(ours.c_str(), nullptr) - std::strtod(theirs.c_str(), nullptr)) < 1e-13;
}

/// Returns how many lines there are.
int CompareAnswers(const std::string& path, StandardRelease release) {
  std::ifstream file(path);
  int lines = 0, wrong = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    const std::vector<std::string_view> parts = Split(line, '|');
    if (parts.size() != 4) {
      ADD_FAILURE() << path << ": " << line;
      return lines;
    }
    std::string name, status;
    const ResultPair pair = GeneratedPair(std::strtoull(std::string(parts[0]).c_str(), nullptr, 10), &name);
    const FigureRow row = Measured(std::string(parts[1]), name, pair, release, &status);
    const std::vector<std::string_view> cells = Split(parts[3], ';');
    std::string ours;
    // 8.1 writes "Warning".
    bool same = status == (parts[2] == "Warning" ? "warning" : parts[2]) && cells.size() == kMeasures;
    for (size_t i = 0; i < cells.size() && i < kMeasures; ++i) {
      const std::string text = row.all()[i].Text();
      same = same && SameCell(i, text, std::string(cells[i]));
      ours += text + ";";
    }
    if (same) continue;
    if (++wrong <= 10) ADD_FAILURE() << name << " " << line << "\n ours " << status << " " << ours;
  }
  EXPECT_EQ(wrong, 0) << "of " << lines;
  return lines;
}

TEST(Standards, FiguresOfRecordedAnswers) {
  const std::string folder = std::string(MSPROBE_SOURCE_DIR) + "/tests/golden/standards/";
  EXPECT_GT(CompareAnswers(folder + "answers_26.2.0.txt", StandardRelease::k26), 500);
  EXPECT_GT(CompareAnswers(folder + "answers_8.1.1.txt", StandardRelease::k8), 50);
}

/// Answers made on the spot, by publish_standards.py and the deep tests.
TEST(Standards, FiguresOfGivenAnswers) {
  const char *new_release = std::getenv("MSPROBE_ANSWERS_26"), *old_release = std::getenv("MSPROBE_ANSWERS_8");
  if (!new_release && !old_release) GTEST_SKIP() << "no answers are given";
  if (new_release) std::printf("%d answers of 26.2\n", CompareAnswers(new_release, StandardRelease::k26));
  if (old_release) std::printf("%d answers of 8.1\n", CompareAnswers(old_release, StandardRelease::k8));
}

TEST(Standards, NumbersAsNumpyShowsThem) {
  EXPECT_EQ(LabFigure().Text(), " ");
  EXPECT_EQ(LabFigure::Whole(0).Text(), "0");
  EXPECT_EQ(LabFigure::Double(0.1).Text(), "0.10000000000000");
  EXPECT_EQ(LabFigure::Double(NAN).Text(), "nan");
  EXPECT_EQ(LabFigure::Of(static_cast<double>(0.1f), Width::kSingle).Text(), "0.1");
  EXPECT_EQ(LabFigure::Of(std::ldexp(1.0, -20), Width::kSingle).Text(), "9.536743e-07");
  EXPECT_EQ(LabFigure::Of(3866624, Width::kSingle).Text(), "3.866624e+06");
  EXPECT_EQ(LabFigure::Of(RoundToHalf(0.1), Width::kHalf).Text(), "0.1");
  EXPECT_EQ(RoundToHalf(65519), 65504);
  EXPECT_EQ(RoundToHalf(-65520), -INFINITY);
  EXPECT_EQ(RoundToHalf(std::ldexp(1.0, -25)), 0);
  EXPECT_EQ(RoundToHalf(std::ldexp(3.0, -25)), std::ldexp(1.0, -23));
}

TEST(Standards, OfNames) {
  EXPECT_EQ(StandardOf("mul_", DType::kFloat32, false, StandardRelease::k8), Standard::kAbsolute);
  EXPECT_EQ(StandardOf("fill", DType::kFloat32, false, StandardRelease::k8), Standard::kBenchmark);
  EXPECT_EQ(StandardOf("matmul", DType::kInt64, false, StandardRelease::k8), Standard::kBinary);
  EXPECT_EQ(StandardOf("matmul", DType::kFloat32, false, StandardRelease::k26), Standard::kBenchmark);
  EXPECT_EQ(StandardOf("matmul", DType::kFloat32, true, StandardRelease::k26), Standard::kAbsolute);
  EXPECT_EQ(StandardOf("matmul", DType::kFloat8E5M2, true, StandardRelease::k26), Standard::kUlp);
}

}  // namespace
}  // namespace msprobe
