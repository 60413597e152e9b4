#include "lab/standards/ratios.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "base/text.h"

namespace msprobe {
namespace {

using In = DetailsColumn;

// Positions in a row of api_precision_compare_details.
enum Out : size_t {
  kOutName,
  kOutSmallValue,
  kOutRmse = kOutSmallValue + 2,
  kOutMaxRelative = kOutRmse + 2,
  kOutMeanRelative = kOutMaxRelative + 2,
  kOutBalance = kOutMeanRelative + 2,
  kOutInfNan = kOutBalance + 2,
  kOutRelativeRate = kOutInfNan + 2,
  kOutAbsoluteRate = kOutRelativeRate + 2,
  kOutErrorRate = kOutAbsoluteRate + 2,
  kOutMeanUlp = kOutErrorRate + 2,
  kOutUlpShare,
  kOutUlpShareRatio,
  kOutUlpStatus,
  kOutThousandth,
  kOutResult = kOutThousandth + 2,
  kOutAlgorithm,
  kOutMessage,
  kOutColumns,
};

constexpr double kUlpMean = 64, kUlpShare32 = 0.05, kUlpShare16 = 0.001, kUlpRatio = 1, kThousandthPasses = 0.999;

std::optional<double> NumberIn(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  if (text.empty()) return std::nullopt;
  const std::string copy(text);
  char* end = nullptr;
  const double v = std::strtod(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size()) return std::nullopt;
  return v;
}

/// The tensors of torch_npu are judged as float8.
DType JudgedType(std::string_view name) {
  return Contains(name, "HiFloat8Tensor") ? DType::kFloat8E5M2 : ParseDType(name);
}

bool IsBlank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

/// Fills one row.
class Comparison {
 public:
  Comparison(const DetailsRow& npu, const DetailsRow& gpu, std::string_view api, StandardRelease release)
      : npu_(npu), gpu_(gpu), limits_(RatioLimitsOf(api, release)), dtype_(JudgedType(npu[In::kDtype])) {
    row_.cells.assign(kOutColumns, " ");
    row_.cells[kOutName] = npu[In::kName];
  }

  RatioRow Skip() {
    row_.status = LabStatus::kSkip;
    row_.cells[kOutResult] = LabStatusText(row_.status);
    row_.cells[kOutMessage] = npu_[In::kMessage];
    return std::move(row_);
  }

  RatioRow By(Standard standard) {
    const char* algorithm = " ";
    switch (standard) {
      case Standard::kBenchmark: Benchmark(), algorithm = "标杆比对法"; break;
      case Standard::kAbsolute: Rates(""), algorithm = "绝对阈值法"; break;
      case Standard::kBinary: Binary(), algorithm = "二进制一致法"; break;
      case Standard::kUlp: Ulps(), algorithm = "ULP误差比对法"; break;
      case Standard::kThousandth: Thousandth(), algorithm = "双千指标法"; break;
      case Standard::kAccumulative: Accumulative(), algorithm = "累积误差比对法"; break;
    }
    if (!row_.failed.empty()) {
      std::string name = row_.cells[kOutName];
      row_.cells.assign(kOutColumns, " ");
      row_.cells[kOutName] = std::move(name);
      row_.cells[kOutResult] = LabStatusText(LabStatus::kSkip);
      row_.cells[kOutMessage] = row_.failed;
      row_.status = LabStatus::kSkip;
      return std::move(row_);
    }
    row_.cells[kOutResult] = LabStatusText(row_.status);
    row_.cells[kOutAlgorithm] = algorithm;
    row_.cells[kOutMessage] = message_;
    return std::move(row_);
  }

 private:
  /// A figure of one file; blank cells are 0 where both devices are compared, and an error where limits are.
  double Figure(const DetailsRow& row, In column, bool blank_is_zero) {
    const std::string& text = row[column];
    if (IsBlank(text) && blank_is_zero) return 0;
    const std::optional<double> v = NumberIn(text);
    if (v) return *v;
    if (row_.failed.empty()) {
      row_.failed = std::string(DetailsColumnName(column)) +
                    (IsBlank(text) ? " has no value" : " is no number: " + OneLine(text));
    }
    return 0;
  }

  struct Ratio {
    double value = NAN;
    bool consistent = true;
  };
  Ratio RatioOf(double ours, double theirs, In column) {
    if (std::isfinite(ours) && std::isfinite(theirs))
      return {std::fabs(ours) / std::max(std::fabs(theirs), LimitsOf(dtype_).smallest_error), true};
    const bool same = std::isinf(ours) || std::isinf(theirs) ? ours == theirs : std::isnan(ours) && std::isnan(theirs);
    message_ += std::string(DetailsColumnName(column)) + (same ? "同为同号inf或nan\n" : "inf或nan不一致\n");
    return {NAN, same};
  }

  void Put(size_t at, double value) { row_.cells[at] = LabFigure::Double(value).Text(); }
  void PutStatus(size_t at, bool passes) {
    row_.cells[at] = LabStatusText(passes ? LabStatus::kPass : LabStatus::kError);
  }

  void Benchmark() {
    struct Part {
      In column;
      Out place;
      double limit;
      const char* failed;  // null: shown, not judged
    };
    const Part parts[] = {
        {In::kSmallValue, kOutSmallValue, limits_.small_value, "ERROR: 小值域错误比值超过阈值\n"},
        {In::kRmse, kOutRmse, limits_.rmse, "ERROR: 均方根误差比值超过阈值\n"},
        {In::kMaxRelative, kOutMaxRelative, limits_.max_relative, "ERROR: 相对误差最大值比值超过阈值\n"},
        {In::kMeanRelative, kOutMeanRelative, limits_.mean_relative, "ERROR: 相对误差平均值比值超过阈值\n"},
        {In::kBalance, kOutBalance, limits_.balance, nullptr},
    };
    std::string failed;
    for (const Part& part : parts) {
      const double ours = Figure(npu_, part.column, true), theirs = Figure(gpu_, part.column, true);
      const Ratio ratio = RatioOf(ours, theirs, part.column);
      const bool passes = ratio.consistent && !(ratio.value > part.limit);
      Put(part.place, ratio.value);
      PutStatus(part.place + 1, passes);
      if (!passes && part.failed) failed += part.failed;
    }
    message_ += failed;
    row_.status = failed.empty() ? LabStatus::kPass : LabStatus::kError;
  }

  void Rates(std::string_view end) {
    struct Part {
      In column;
      Out place;
      const char* failed;
    };
    const Part parts[] = {
        {In::kInfNan, kOutInfNan, "ERROR: inf/nan错误率超过阈值"},
        {In::kRelativeRate, kOutRelativeRate, "ERROR: 相对误差错误率超过阈值"},
        {In::kAbsoluteRate, kOutAbsoluteRate, "ERROR: 绝对误差错误率超过阈值"},
    };
    row_.status = LabStatus::kPass;
    for (const Part& part : parts) {
      const double rate = Figure(npu_, part.column, false);
      Put(part.place, rate);
      PutStatus(part.place + 1, rate == 0);
      if (rate == 0) continue;
      Fail(part.failed, end);
    }
  }

  void Fail(std::string_view text, std::string_view end) {
    if (!message_.empty() && !end.empty()) message_ += '\n';
    message_.append(text).append(end);
    row_.status = LabStatus::kError;
  }

  void Accumulative() {
    Rates("\n");
    const double balance = Figure(npu_, In::kBalance, false);
    const bool passes = balance <= LimitsOf(dtype_).balance;
    Put(kOutBalance, balance);
    PutStatus(kOutBalance + 1, passes);
    if (!passes) Fail("ERROR: 误差均衡性超过阈值", "\n");
  }

  /// One cell, shown as it is, that a limit decides.
  void Share(In column, Out place, bool (*passes)(double), const char* failed) {
    const double v = Figure(npu_, column, false);
    row_.cells[place] = npu_[column];
    PutStatus(place + 1, passes(v));
    row_.status = passes(v) ? LabStatus::kPass : LabStatus::kError;
    if (!passes(v)) message_ = failed;
  }
  void Binary() {
    Share(
        In::kErrorRate, kOutErrorRate, [](double v) { return v == 0; }, "ERROR: 二进制一致错误率超过阈值\n");
  }
  void Thousandth() {
    Share(
        In::kThousandth, kOutThousandth, [](double v) { return v >= kThousandthPasses; }, "ERROR: 双千指标不达标\n");
  }

  void Ulps() {
    const bool eight = IsFloat8(dtype_), single = dtype_ == DType::kFloat32;
    const double share = Figure(npu_, In::kUlpShare, true);
    Ratio mean, ratio;
    if (!eight) {
      mean.value = Figure(npu_, In::kMeanUlp, true);
      const double theirs = Figure(gpu_, In::kMeanUlp, true);
      if (!std::isfinite(mean.value) || !std::isfinite(theirs))
        mean.consistent = RatioOf(mean.value, theirs, In::kMeanUlp).consistent;
      ratio = RatioOf(share, Figure(gpu_, In::kUlpShare, true), In::kUlpShare);
      Put(kOutMeanUlp, mean.value);
      Put(kOutUlpShareRatio, ratio.value);
    }
    Put(kOutUlpShare, share);
    const bool consistent = mean.consistent && ratio.consistent;
    const bool passes =
        consistent && ((single && mean.value < kUlpMean) || share < (single ? kUlpShare32 : kUlpShare16) ||
                       (!eight && ratio.value < kUlpRatio));
    if (consistent) PutStatus(kOutUlpStatus, passes);
    row_.status = passes ? LabStatus::kPass : LabStatus::kError;
    if (!passes) message_ += "ERROR: ULP误差不满足标准\n";
  }

  const DetailsRow &npu_, &gpu_;
  const RatioLimits& limits_;
  DType dtype_;
  RatioRow row_;
  std::string message_;
};

}  // namespace

const std::vector<std::string>& CheckColumns() {
  static const std::vector<std::string> columns = {"API Name",
                                                   "Bench Dtype",
                                                   "DEVICE Dtype",
                                                   "Shape",
                                                   "余弦相似度",
                                                   "最大绝对误差",
                                                   "双百指标",
                                                   "双千指标",
                                                   "双万指标",
                                                   "二进制一致错误率",
                                                   "误差均衡性",
                                                   "均方根误差",
                                                   "小值域错误占比",
                                                   "相对误差最大值",
                                                   "相对误差平均值",
                                                   "inf/nan错误率",
                                                   "相对误差错误率",
                                                   "绝对误差错误率",
                                                   "ULP误差最大值",
                                                   "ULP误差平均值",
                                                   "ULP误差大于阈值占比",
                                                   "Status",
                                                   "Message"};
  return columns;
}

const std::vector<std::string>& RatioColumns() {
  static const std::vector<std::string> columns = {"API Name",
                                                   "小值域错误比值",
                                                   "小值域判定结果",
                                                   "均方根误差比值",
                                                   "均方根误差判定结果",
                                                   "相对误差最大值比值",
                                                   "相对误差最大值判定结果",
                                                   "相对误差平均值比值",
                                                   "相对误差平均值判定结果",
                                                   "误差均衡性比值",
                                                   "误差均衡性判定结果",
                                                   "inf/nan错误率",
                                                   "inf/nan判定结果",
                                                   "相对误差错误率",
                                                   "相对误差判定结果",
                                                   "绝对误差错误率",
                                                   "绝对误差判定结果",
                                                   "二进制一致错误率",
                                                   "二进制一致错误率判定结果",
                                                   "ULP误差平均值",
                                                   "ULP误差大于阈值占比",
                                                   "ULP误差大于阈值占比比值",
                                                   "ULP误差判定结果",
                                                   "双千指标",
                                                   "双千指标判定结果",
                                                   "比对结果",
                                                   "比对算法",
                                                   "Message"};
  return columns;
}

const std::vector<std::string>& ApiResultColumns() {
  static const std::vector<std::string> columns = {"API Name", "Forward Test Success", "Backward Test Success",
                                                   "Message"};
  return columns;
}

std::string_view DetailsColumnName(DetailsColumn c) {
  static constexpr std::array<size_t, kDetailsColumns> places = {0,  2,  3,  7,  9,  10, 11, 12,
                                                                 13, 14, 15, 16, 17, 19, 20, 22};
  return CheckColumns()[places[static_cast<size_t>(c)]];
}

bool IsOutsideStandards(std::string_view dtype) {
  return dtype == "torch.float64" || dtype == "torch.complex64" || dtype == "torch.complex128";
}

RatioRow CompareRatios(const DetailsRow& npu, const DetailsRow& gpu, std::string_view api, StandardRelease release) {
  Comparison comparison(npu, gpu, api, release);
  const std::string& dtype = npu[In::kDtype];
  if (IsBlank(dtype) || IsOutsideStandards(dtype) || npu[In::kShape] == "(0,)") return comparison.Skip();
  // Only the absolute standard fills this column.
  const bool float8_input = !IsBlank(npu[In::kRelativeRate]);
  return comparison.By(StandardOf(api, JudgedType(dtype), float8_input, release));
}

}  // namespace msprobe
