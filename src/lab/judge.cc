#include "lab/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "lab/element_bound.h"
#include "lab/known_kernels.h"
#include "lab/result_values.h"
#include "lab/standards/api_name.h"
#include "lab/standards/ratios.h"
#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string out = "(";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + (shape.size() == 1 ? ",)" : ")");
}

std::string TypeText(DType t) { return "torch." + std::string(DTypeName(t)); }

/// The type that mindstudio-probe's bench has: twice as wide.
DType BenchType(DType device) {
  if (!IsFloating(device)) return device;
  return ElementSize(device) < ElementSize(DType::kFloat32) ? DType::kFloat32 : DType::kFloat64;
}

bool IsJudged(DType t) {
  const DType real = RealTypeOf(t);
  return real == DType::kFloat64 || real == DType::kFloat32 || real == DType::kFloat16 || real == DType::kBFloat16;
}

class Judge {
 public:
  Judge(std::string api, StandardRelease release) : api_(std::move(api)), release_(release) {}

  CheckedOutput Of(ResultItem* item) const {
    CheckedOutput out;
    switch (item->kind) {
      case ResultItem::Kind::kTensor: return OfTensors(item);
      case ResultItem::Kind::kNone:
        out.status = LabStatus::kSkip;
        out.message = "Bench output is None, skip this test.";
        return out;
      case ResultItem::Kind::kApart:
        out.status = LabStatus::kError;
        out.message = "the device and the bench return results of different kinds";
        return out;
      case ResultItem::Kind::kValue: break;
    }
    out.status = item->same ? LabStatus::kPass : LabStatus::kError;
    if (item->same) out.row[Measure::kErrorRate] = LabFigure::Whole(0);
    return out;
  }

  const std::string& api() const { return api_; }

 private:
  CheckedOutput OfTensors(ResultItem* item) const {
    CheckedOutput out;
    const DType dtype = ParseDType(item->dtype);
    if (item->shape != item->truth_shape) {
      out.status = LabStatus::kError;
      out.message = "the bench has the shape " + ShapeText(item->truth_shape);
      return out;
    }
    if (item->ours.empty()) {
      out.status = LabStatus::kSkip;
      out.message = "it has no elements";
      return out;
    }
    if (IsJudged(dtype)) return OfFloats(item, dtype);
    const size_t size = ElementSize(dtype);
    if (size == 0 || item->ours.size() != item->truth.size() || IsFloating(dtype)) {
      out.status = LabStatus::kSkip;
      out.message = "no standard judges " + item->dtype;
      return out;
    }
    return OfExact(*item, dtype, size);
  }

  CheckedOutput OfExact(const ResultItem& item, DType dtype, size_t size) const {
    const size_t n = item.ours.size() / size;
    if (IsQuantised(api_) && dtype == DType::kInt8) {
      double largest = 0;
      for (size_t i = 0; i < n; ++i) {
        const int apart = static_cast<int8_t>(item.ours[i]) - static_cast<int8_t>(item.truth[i]);
        largest = std::max(largest, static_cast<double>(std::abs(apart)));
      }
      return CheckQuantised(largest);
    }
    uint64_t differ = 0;
    for (size_t i = 0; i < n; ++i) differ += std::memcmp(&item.ours[i * size], &item.truth[i * size], size) != 0;
    return CheckExact(differ, n);
  }

  CheckedOutput OfFloats(ResultItem* item, DType dtype) const {
    ResultPair pair;
    pair.device.dtype = RealTypeOf(dtype);
    pair.bench.dtype = BenchType(pair.device.dtype);
    pair.device.values = FloatsOf(item->ours, dtype);
    pair.bench.values = FloatsOf(item->truth, DType::kFloat64);
    CheckedOutput out;
    if (pair.device.values.size() != pair.bench.values.size()) {
      out.status = LabStatus::kError;
      out.message = "the bench has another number of elements";
      return out;
    }
    WithRounding(pair.bench.width(), [&pair](auto round) {
      for (double& v : pair.bench.values) v = round(v);
    });
    return CheckFloats(api_, pair, false, release_);
  }

  std::string api_;
  StandardRelease release_;
};

std::vector<std::string> RowOf(const std::string& name, const ResultItem& item, const CheckedOutput& checked) {
  std::vector<std::string> out = {name, " ", " ", " "};
  if (item.kind == ResultItem::Kind::kTensor) {
    const DType dtype = ParseDType(item.dtype);
    const DType bench = IsComplex(dtype) ? DType::kComplex128 : BenchType(dtype);
    out[1] = bench == DType::kUnknown ? item.dtype : TypeText(bench), out[2] = item.dtype,
    out[3] = ShapeText(item.shape);
  } else if (item.kind == ResultItem::Kind::kValue) {
    out[1] = out[2] = item.dtype;
  }
  for (const LabFigure& figure : checked.row.all()) out.push_back(figure.Text());
  out.emplace_back(LabStatusText(checked.status));
  out.push_back(checked.message);
  return out;
}

std::string UlpText(double v) {
  if (!std::isfinite(v)) return "inf";
  std::string out;
  AppendFixed(out, v, 3);
  return out;
}

std::string ShortText(double v) { return std::isfinite(v) ? fmt::format("{:.3g}", v) : "inf"; }

/// Functions of each element: fewer correct digits than rounding leaves are an approximation as long as half are there.
bool IsOfElements(const ResultItem& item) {
  const std::string_view rule = std::string_view(item.rule).substr(0, item.rule.find(','));  // before ", steps"
  return rule == "ulp" || rule == "condition" || rule == "saved";
}

double HalfOfTheDigits(DType dtype) { return PowerOfTwo(InfoOf(dtype).fraction_bits() / 2); }

double TimesOf(double error, double limit) {
  return error == 0 ? 0 : limit > 0 ? error / limit : std::numeric_limits<double>::infinity();
}

/// A row without a verdict, which says why.
void AddUnknown(const std::string& name, const ResultItem& item, CheckedCall* out) {
  std::vector<std::string>& row = out->float64.emplace_back(Float64Columns().size());
  row[0] = name, row[1] = item.dtype, row[2] = "unknown", row[8] = item.unknown;
}

/// A row of the comparison with float64.
void AddFloat64(const std::string& name, std::string_view api, const ResultItem& item, CheckedCall* out) {
  if (item.error < 0) {
    if (!item.unknown.empty()) AddUnknown(name, item, out);
    return;
  }
  const DType dtype = ParseDType(item.dtype);
  const double coarse = IsOfElements(item) ? HalfOfTheDigits(dtype) : 0;
  Float64Verdict verdict = VerdictOf(item.error, item.limit, coarse);
  ElementFigures elements;
  if (IsJudged(dtype)) elements = JudgeElements(item, dtype);
  if (elements.bounded) verdict = std::max(verdict, VerdictOf(elements.error, elements.limit, coarse));
  out->verdict = std::max(verdict, out->verdict.value_or(verdict));
  out->times = std::max(out->times, TimesOf(item.error, item.limit));
  if (elements.bounded) out->times = std::max(out->times, TimesOf(elements.error, elements.limit));
  const bool off = verdict >= Float64Verdict::kSuspicious;
  std::string_view known = off ? KnownKernel(api, ParseOutputName(name).direction, item.dtype) : std::string_view();
  if (off && known.empty()) known = item.known;
  out->known = out->known && (!off || !known.empty());
  std::vector<std::string> row = {name,
                                  item.dtype,
                                  std::string(Float64VerdictText(verdict)),
                                  UlpText(item.error),
                                  UlpText(item.limit),
                                  std::string(known)};
  row.push_back(elements.bounded ? UlpText(elements.error) : "");
  row.push_back(elements.bounded ? UlpText(elements.limit) : "");
  row.push_back(item.rule);
  row.push_back(elements.bounded ? ShortText(item.terms) : "");
  row.push_back(elements.bounded && item.condition >= 0 ? ShortText(item.condition) : "");
  row.push_back(IsJudged(dtype) ? ShortText(elements.rtol) : "");
  row.push_back(IsJudged(dtype) ? ShortText(elements.atol) : "");
  row.push_back(ClassesText(elements));
  row.push_back(HistogramText(elements));
  out->float64.push_back(std::move(row));
}

/// How mindstudio-probe judges results of MindSpore.
struct MindSporeFigures {
  double cosine = 0, absolute = 0, relative = 0;
  bool valid = false;

  static MindSporeFigures Of(const ResultItem& item) {
    MindSporeFigures out;
    const DType dtype = ParseDType(item.dtype);
    if (item.kind != ResultItem::Kind::kTensor || item.shape != item.truth_shape || !IsJudged(dtype)) return out;
    const std::vector<double> ours = FloatsOf(item.ours, dtype), truth = FloatsOf(item.truth, DType::kFloat64);
    if (ours.empty() || ours.size() != truth.size()) return out;
    double product = 0, squares = 0, truth_squares = 0;
    for (size_t i = 0; i < ours.size(); ++i) {
      const double apart = std::abs(ours[i] - truth[i]), size = std::abs(truth[i]);
      product += ours[i] * truth[i], squares += ours[i] * ours[i], truth_squares += truth[i] * truth[i];
      // A NaN stays, as numpy keeps it.
      out.absolute = apart > out.absolute || std::isnan(apart) ? apart : out.absolute;
      const double relative = apart / (size == 0 ? kZeroSize : size);
      out.relative = relative > out.relative || std::isnan(relative) ? relative : out.relative;
    }
    out.cosine = (kZeroSize + product) / (kZeroSize + std::sqrt(squares) * std::sqrt(truth_squares));
    out.valid = true;
    return out;
  }
  bool passes() const { return cosine > 0.99 && absolute < 0.001; }

  static constexpr double kZeroSize = 1e-8;
};

LabStatus MindSporeStatus(const ResultItem& item, const MindSporeFigures& figures) {
  if (figures.valid) return figures.passes() ? LabStatus::kPass : LabStatus::kError;
  if (item.kind == ResultItem::Kind::kValue) return item.same ? LabStatus::kPass : LabStatus::kError;
  if (item.kind == ResultItem::Kind::kApart || item.shape != item.truth_shape) return LabStatus::kError;
  if (item.kind == ResultItem::Kind::kNone || item.ours.empty()) return LabStatus::kSkip;
  return item.ours == item.truth ? LabStatus::kPass : LabStatus::kError;
}

/// "Float32" for mindspore.float32, as the tables of MindSpore have it.
std::string MindSporeDtype(std::string_view dtype) {
  std::string out(dtype.substr(dtype.rfind('.') + 1));
  if (!out.empty()) out[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(out[0])));
  return out;
}

std::vector<std::string> MindSporeRow(const std::string& name, const ResultItem& item, LabStatus* status) {
  const MindSporeFigures figures = MindSporeFigures::Of(item);
  *status = MindSporeStatus(item, figures);
  std::vector<std::string> out(MindSporeCheckColumns().size());
  out[0] = name;
  if (item.kind == ResultItem::Kind::kTensor) {
    out[2] = MindSporeDtype(item.dtype), out[3] = ShapeText(item.shape);
    out[1] = IsJudged(ParseDType(item.dtype)) ? "Float64" : out[2];
  }
  if (figures.valid) {
    out[4] = PyRepr(figures.cosine), out[5] = PyRepr(figures.absolute), out[6] = PyRepr(figures.relative);
    if (!(figures.cosine > 0.99)) out[8] += "cosine similarity is less than threshold: 0.99 ";
    if (!(figures.absolute < 0.001)) out[8] += "max absolute difference is greater than threshold: 0.001 ";
  }
  out[7] = LabStatusText(*status);
  return out;
}

/// The worst of one direction, of results of MindSpore.
LabStatus JudgeMindSpore(const std::string& prefix, const std::string& api, std::vector<ResultItem>* items,
                         CheckedCall* out) {
  LabStatus worst = LabStatus::kPass;
  for (size_t i = 0; i < items->size(); ++i) {
    LabStatus status;
    out->rows.push_back(MindSporeRow(prefix + std::to_string(i), (*items)[i], &status));
    worst = WorseOf(worst, status);
    AddFloat64(prefix + std::to_string(i), api, (*items)[i], out);
  }
  return worst;
}

/// The worst of one direction.
LabStatus JudgeItems(const std::string& prefix, const Judge& judge, std::vector<ResultItem>* items, CheckedCall* out) {
  LabStatus worst = LabStatus::kPass;
  for (size_t i = 0; i < items->size(); ++i) {
    const CheckedOutput checked = judge.Of(&(*items)[i]);
    worst = WorseOf(worst, checked.status);
    out->rows.push_back(RowOf(prefix + std::to_string(i), (*items)[i], checked));
    AddFloat64(prefix + std::to_string(i), judge.api(), (*items)[i], out);
  }
  return worst;
}

/// Random results have no errors of elements; their distributions are compared.
void AddDraws(const DrawnResult& drawn, CheckedCall* out) {
  out->verdict = drawn.verdict;
  out->known = false;
  out->forward = drawn.verdict == Float64Verdict::kWrong ? LabStatus::kError : LabStatus::kPass;
  const std::string found =
      fmt::format("{} values, distance {:.3g}, {:.3g} by chance", drawn.values, drawn.distance, drawn.limit);
  std::vector<std::string> row(Float64Columns().size());
  row[0] = out->full + ".forward.output.0";
  row[2] = Float64VerdictText(drawn.verdict);
  row[8] = "distribution";
  row[13] = found;
  out->float64.push_back(std::move(row));
}

std::vector<std::string> BlankRow(const std::string& name, const std::string& why) {
  ResultItem none;
  CheckedOutput checked;
  checked.status = LabStatus::kSkip;
  checked.message = why;
  return RowOf(name, none, checked);
}

}  // namespace

CheckedCall SkippedCall(const std::string& full, LabFramework framework, const std::string& why) {
  CheckedCall out;
  out.full = full;
  out.forward = out.backward = LabStatus::kSkip;
  out.message = why;
  if (framework == LabFramework::kTorch) {
    out.rows.push_back(BlankRow(full + ".forward.output.0", why));
  } else {
    std::vector<std::string>& row = out.rows.emplace_back(MindSporeCheckColumns().size());
    row[0] = full + ".forward.output.0", row[7] = LabStatusText(LabStatus::kSkip), row[8] = why;
  }
  return out;
}

void JudgeByFloat64(CheckedCall* call) {
  const auto status_of = [](std::string_view verdict) {
    if (verdict == Float64VerdictText(Float64Verdict::kWrong)) return LabStatus::kError;
    return verdict == Float64VerdictText(Float64Verdict::kSuspicious) ? LabStatus::kWarning : LabStatus::kPass;
  };
  for (std::vector<std::string>& row : call->rows) {
    const auto found = std::find_if(call->float64.begin(), call->float64.end(),
                                    [&](const std::vector<std::string>& other) { return other[0] == row[0]; });
    if (found == call->float64.end()) continue;
    row[row.size() - 2] = LabStatusText(status_of((*found)[2]));
    row.back() = "the comparison with float64 says the status: no standard is meant for communications";
  }
  if (call->verdict) call->forward = status_of(Float64VerdictText(*call->verdict));
}

CheckedCall JudgeCall(const std::string& full, const std::string& api, bool backward_wanted, LabFramework framework,
                      StandardRelease release, CallAnswer&& answer) {
  if (!answer.why.empty()) return SkippedCall(full, framework, answer.why);
  CheckedCall out;
  out.full = full;
  if (answer.draws) {
    AddDraws(*answer.draws, &out);
    return out;
  }
  if (framework == LabFramework::kMindSpore) {
    out.forward = JudgeMindSpore(full + ".forward.output.", api, &answer.forward, &out);
    if (!answer.backward.empty())
      out.backward = JudgeMindSpore(full + ".backward.output.", api, &answer.backward, &out);
    return out;
  }
  const Judge judge(api, release);
  out.forward = JudgeItems(full + ".forward.output.", judge, &answer.forward, &out);
  if (!answer.note.empty()) {
    out.backward = LabStatus::kSkip;
    out.message = answer.note;
    out.rows.push_back(BlankRow(full + ".backward.output.0", answer.note));
  } else if (backward_wanted && !answer.backward.empty()) {
    out.backward = JudgeItems(full + ".backward.output.", judge, &answer.backward, &out);
  }
  return out;
}

}  // namespace msprobe
