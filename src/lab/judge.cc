#include "lab/judge.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/text.h"
#include "lab/known_kernels.h"
#include "lab/standards/api_name.h"
#include "lab/standards/ratios.h"

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
  switch (device) {
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2: return DType::kFloat32;
    case DType::kFloat32: return DType::kFloat64;
    default: return device;
  }
}

double HalfOf(uint16_t bits) {
  const int power = bits >> 10 & 31;
  const double fraction = bits & 1023, sign = bits >> 15 ? -1 : 1;
  if (power == 31) return fraction == 0 ? sign * INFINITY : NAN;
  return sign * (power == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, power - 25));
}

template <typename T, typename To>
std::vector<double> Decoded(const std::string& bytes, To&& to) {
  std::vector<double> out(bytes.size() / sizeof(T));
  for (size_t i = 0; i < out.size(); ++i) {
    T v;
    std::memcpy(&v, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = to(v);
  }
  return out;
}

/// Complex numbers are pairs of real ones.
DType RealType(DType t) {
  if (t == DType::kComplex64) return DType::kFloat32;
  return t == DType::kComplex128 ? DType::kFloat64 : t == DType::kComplex32 ? DType::kFloat16 : t;
}

std::vector<double> FloatsOf(const std::string& bytes, DType dtype) {
  switch (RealType(dtype)) {
    case DType::kFloat64: return Decoded<double>(bytes, [](double v) { return v; });
    case DType::kFloat32: return Decoded<float>(bytes, [](float v) { return static_cast<double>(v); });
    case DType::kFloat16: return Decoded<uint16_t>(bytes, HalfOf);
    default: break;
  }
  return Decoded<uint16_t>(bytes, [](uint16_t v) {
    const uint32_t wide = uint32_t{v} << 16;
    float out;
    std::memcpy(&out, &wide, sizeof out);
    return static_cast<double>(out);
  });
}

bool IsJudged(DType t) {
  const DType real = RealType(t);
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
    pair.device.dtype = RealType(dtype);
    pair.bench.dtype = BenchType(pair.device.dtype);
    pair.device.values = FloatsOf(item->ours, dtype);
    pair.bench.values = FloatsOf(item->truth, DType::kFloat64);
    CheckedOutput out;
    if (pair.device.values.size() != pair.bench.values.size()) {
      out.status = LabStatus::kError;
      out.message = "the bench has another number of elements";
      return out;
    }
    for (double& v : pair.bench.values) v = RoundTo(pair.bench.width(), v);
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

/// A row of the comparison with float64.
void AddFloat64(const std::string& name, std::string_view api, const ResultItem& item, CheckedCall* out) {
  if (item.error < 0) return;
  const Float64Verdict verdict = VerdictOf(item.error, item.limit);
  out->verdict = std::max(verdict, out->verdict.value_or(verdict));
  const bool off = verdict >= Float64Verdict::kSuspicious;
  const std::string_view known =
      off ? KnownKernel(api, ParseOutputName(name).direction, item.dtype) : std::string_view();
  out->known = out->known && (!off || !known.empty());
  out->float64.push_back({name, item.dtype, std::string(Float64VerdictText(verdict)), UlpText(item.error),
                          UlpText(item.limit), std::string(known)});
}

/// The worst of one direction.
LabStatus JudgeItems(const std::string& prefix, const Judge& judge, std::vector<ResultItem>* items, CheckedCall* out) {
  LabStatus worst = LabStatus::kPass;
  for (size_t i = 0; i < items->size(); ++i) {
    const CheckedOutput checked = judge.Of(&(*items)[i]);
    worst = WorseOf(worst, checked.status);
    out->rows.push_back(RowOf(prefix + std::to_string(i), (*items)[i], checked));
    AddFloat64(prefix + std::to_string(i), judge.api(), (*items)[i], out);
    (*items)[i].ours.clear(), (*items)[i].truth.clear();
  }
  return worst;
}

std::vector<std::string> BlankRow(const std::string& name, const std::string& why) {
  ResultItem none;
  CheckedOutput checked;
  checked.status = LabStatus::kSkip;
  checked.message = why;
  return RowOf(name, none, checked);
}

}  // namespace

CheckedCall SkippedCall(const std::string& full, const std::string& why) {
  CheckedCall out;
  out.full = full;
  out.forward = out.backward = LabStatus::kSkip;
  out.message = why;
  out.rows.push_back(BlankRow(full + ".forward.output.0", why));
  return out;
}

CheckedCall JudgeCall(const std::string& full, const std::string& api, bool backward_wanted, StandardRelease release,
                      CallAnswer&& answer) {
  if (!answer.why.empty()) return SkippedCall(full, answer.why);
  CheckedCall out;
  out.full = full;
  if (answer.draws) {
    out.forward = answer.draws_alike ? LabStatus::kPass : LabStatus::kError;
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
