#include "jobs/kernel_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/message.h"
#include "base/text.h"
#include "compare/values/tensor_pairs.h"
#include "import/adump_layout.h"
#include "report/rows/older_verdict.h"
#include "sheet/cell.h"
#include "tensor/files/tensor_file.h"

namespace msprobe {
namespace {

using Cells = std::vector<std::string>;

/// The places of the cells; a pair of columns holds target and golden run.
enum KernelColumn : size_t {
  kName = 0,
  kType = 2,
  kShapeText = 4,
  kTargetStats = 6,
  kGoldenStats = 10,
  kAccuracy = 14,
  kMessage,
  kFirstMetric
};

std::string NumberText(double v, bool csv) {
  if (std::isinf(v)) return std::string(csv ? " " : "") + (v > 0 ? "inf" : "-inf");  // no name of a cell range
  return PyRepr(v);
}

/// Where the two tensors stand: "{op}.{task}.{input|output}.{index}" taken apart.
KernelFinding FindingOf(const KernelTensor& t, std::array<KernelFigures, 2> sides) {
  KernelFinding out;
  out.kernel = t.key.substr(0, t.key.rfind('.', t.key.rfind('.') - 1));
  out.output = IsOutput(t);
  out.slot = SlotOf(t);
  out.graph = t.graph;
  out.place = t.place;
  out.target = std::move(sides[0]);
  out.golden = std::move(sides[1]);
  return out;
}

void NoteMissing(const KernelPair& pair, KernelRow* row) {
  std::string& message = row->cells[kMessage];  // it may say that the other one cannot be read
  message += (message.empty() ? "" : " ") + fmt::format("{} has no such kernel.", pair.target ? "Bench" : "NPU");
}

// ---- values

/// The file stays open while its tensor is looked at.
struct OpenArray {
  std::optional<TensorFile> file;
  std::optional<MappedFile> map;  // of Ascend, whose tensor may be a copy in another order
  HostTensor host;
  Stats stats;
  const FileTensor& tensor() const { return map ? host.tensor : *file->tensor(); }
};

Status OpenMember(const KernelTensor& kernel, OpenArray* out) {
  MSP_ASSIGN_OR_RETURN(MappedFile map, MappedFile::Open(kernel.file));
  MSP_ASSIGN_OR_RETURN(const AdumpFile dump, ReadAdump(map.text(), kernel.file));
  const auto member = static_cast<size_t>(kernel.member);
  if (member >= dump.tensors.size()) return BadInput(Msg("{} was changed while it was read", kernel.file));
  if (!dump.tensors[member].why.empty()) return BadInput(Msg("{}: {}", kernel.file, dump.tensors[member].why));
  out->host = ToHost(dump.tensors[member]);
  out->map = std::move(map);
  return OkStatus();
}

StatusOr<OpenArray> OpenKernel(const KernelTensor& kernel) {
  OpenArray out;
  if (kernel.member >= 0) {
    MSP_RETURN_IF_ERROR(OpenMember(kernel, &out));
  } else {
    MSP_ASSIGN_OR_RETURN(out.file, TensorFile::Open(kernel.file));
    if (!out.file->tensor()) return BadInput(Msg("{} holds no array of numbers", kernel.file));
  }
  if (!ComputeStats(out.tensor().view(), &out.stats)) return BadInput(Msg("{} holds no array of numbers", kernel.file));
  return out;
}

/// The file and, where it holds several, which tensor of it.
std::string PlaceOf(const KernelTensor& kernel) {
  if (kernel.member < 0) return kernel.file;
  return kernel.file + kernel.key.substr(kernel.key.rfind('.', kernel.key.rfind('.') - 1));
}

/// As Python writes a tuple, in brackets: "[2, 3]", "[3,]", "[]".
std::string ShapeText(const std::vector<int64_t>& shape) {
  return fmt::format("[{}{}]", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

std::array<std::string, kStatCount> StatTexts(const OpenArray& array, bool csv) {
  const DType dtype = array.tensor().dtype;
  const Stats& s = array.stats;
  if (s.count == 0) return {};
  std::array<std::string, kStatCount> out = {NumberText(s.max, csv), NumberText(s.min, csv), NumberText(s.mean, csv),
                                             NumberText(s.norm, csv)};
  if (dtype == DType::kBool) {
    out[kMax] = s.max != 0 ? "True" : "False";
    out[kMin] = s.min != 0 ? "True" : "False";
  } else if (IsInteger(dtype)) {
    const bool is_unsigned = dtype >= DType::kUInt8 && dtype <= DType::kUInt64;
    out[kMax] = is_unsigned ? std::to_string(s.uint_max) : std::to_string(s.int_max);
    out[kMin] = is_unsigned ? std::to_string(s.uint_min) : std::to_string(s.int_min);
  }
  return out;
}

void DescribeArray(const KernelTensor& kernel, const OpenArray& array, size_t side, bool csv, KernelRow* row) {
  Cells& cells = row->cells;
  const FileTensor& t = array.tensor();
  cells[kName + side] = PlaceOf(kernel);
  cells[kType + side] = DTypeName(t.dtype);
  cells[kShapeText + side] = ShapeText(t.shape);
  std::array<std::string, kStatCount> stats = StatTexts(array, csv);
  std::move(stats.begin(), stats.end(), cells.begin() + (side == 0 ? kTargetStats : kGoldenStats));
}

KernelFigures FiguresOf(const OpenArray& array) {
  KernelFigures out{std::string(DTypeName(array.tensor().dtype)), array.tensor().shape, {}, {}};
  const Stats& s = array.stats;
  out.stats = {s.max, s.min, s.mean, s.norm};
  const DType dtype = array.tensor().dtype;
  if (IsInteger(dtype)) {
    const bool is_unsigned = dtype >= DType::kUInt8 && dtype <= DType::kUInt64;
    out.stats[kMax] = is_unsigned ? static_cast<double>(s.uint_max) : static_cast<double>(s.int_max);
    out.stats[kMin] = is_unsigned ? static_cast<double>(s.uint_min) : static_cast<double>(s.int_min);
  }
  return out;
}

/// Why two arrays have no metrics; "" when they have.
std::string Unlike(const OpenArray& a, const OpenArray& b) {
  if (a.stats.count == 0 || b.stats.count == 0) return "This is empty data, can not compare.";
  std::string out;
  const auto say = [&out](const char* text) { out += (out.empty() ? "" : " ") + std::string(text); };
  if (a.tensor().shape.empty() || b.tensor().shape.empty()) say("This is type of scalar data, can not compare.");
  if (a.tensor().shape != b.tensor().shape) say("Shape of NPU and bench Tensor do not match.");
  if (a.tensor().dtype != b.tensor().dtype) say("Dtype of NPU and bench Tensor do not match. Skipped.");
  return out;
}

}  // namespace

KernelRow ArrayRow(const KernelPair& pair, bool csv) {
  KernelRow row;
  row.cells.resize(KernelTitles(true).size());
  std::array<std::optional<OpenArray>, 2> arrays;
  for (const size_t side : {0, 1}) {
    const KernelTensor* kernel = side == 0 ? pair.target : pair.golden;
    if (!kernel) continue;
    StatusOr<OpenArray> opened = OpenKernel(*kernel);
    if (!opened.ok()) {
      row.unread = true;
      row.cells[kName + side] = PlaceOf(*kernel);
      row.cells[kMessage] = "Dump file not found or read failed: " + OneLine(opened.status().message());
      continue;
    }
    DescribeArray(*kernel, *opened, side, csv, &row);
    arrays[side] = std::move(*opened);
  }
  if (!pair.target || !pair.golden) {
    NoteMissing(pair, &row);
    return row;
  }
  if (!arrays[0] || !arrays[1]) return row;
  row.cells[kMessage] = Unlike(*arrays[0], *arrays[1]);
  if (!row.cells[kMessage].empty()) return row;
  const FileTensor& target = arrays[0]->tensor();
  TensorDiff diff = DiffTwoTensors(target, arrays[1]->tensor());
  row.finding = FindingOf(*pair.target, {FiguresOf(*arrays[0]), FiguresOf(*arrays[1])});
  row.finding->error = diff.error;
  row.finding->golden_error = diff.golden_error;
  row.cells[kMessage] = diff.scalar ? "This is a 1-d tensor of length 1." : diff.note;
  if (diff.outcome == TensorOutcome::kNanInf) {
    row.accuracy = "No";
    row.cells[kMessage] = diff.note;
  } else if (diff.outcome == TensorOutcome::kCompared) {
    AddListMetrics(target, &diff);
    row.accuracy = AccuracyText(diff);
    for (size_t k = 0; k < kMetricCount; ++k) {
      const MetricCell& cell = diff.cells[k];
      if (cell.IsNumber()) {
        row.cells[kFirstMetric + k] = NumberText(cell.value, csv);
      } else {
        cell.AppendText(&row.cells[kFirstMetric + k]);
      }
    }
  }
  row.cells[kAccuracy] = row.accuracy;
  return row;
}

namespace {

// ---- statistics

/// A number of statistic.csv, in single precision, as the dump has it.
std::optional<float> Statistic(const std::string& text) {
  if (text == "null" || text == "False") return 0.0F;
  if (text == "True") return 1.0F;
  const size_t plus = StartsWith(text, "+") ? 1 : 0;
  float out = 0;
  const auto [end, error] = std::from_chars(text.data() + plus, text.data() + text.size(), out);
  if (error == std::errc::result_out_of_range) return static_cast<float>(std::strtod(text.c_str(), nullptr));
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

/// The fewest digits that tell this float from its neighbours.
double Shortest(float v) {
  if (!std::isfinite(v)) return v;
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), v);
  double out = v;
  if (error == std::errc()) std::from_chars(text.data(), end, out);
  return out;
}

using Statistics = std::array<std::optional<float>, kStatCount>;
static_assert(kKernelStats == kStatCount);

Statistics DescribeLine(const KernelTensor& kernel, size_t side, bool csv, KernelRow* row) {
  Cells& cells = row->cells;
  cells[kName + side] = kernel.key;
  cells[kType + side] = kernel.dtype;
  cells[kShapeText + side] = kernel.shape;
  for (char& c : cells[kShapeText + side]) c = c == '(' ? '[' : c == ')' ? ']' : c;
  cells[kFirstMetric + 2 * kStatCount + side] = kernel.file;
  Statistics out;
  for (size_t k = 0; k < kStatCount; ++k) {
    out[k] = Statistic(kernel.stats[k]);
    if (out[k]) cells[(side == 0 ? kTargetStats : kGoldenStats) + k] = NumberText(Shortest(*out[k]), csv);
  }
  return out;
}

/// "(2,3)" as numbers.
std::vector<int64_t> ShapeOf(std::string_view text) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < text.size();) {
    int64_t n = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), n);
    if (error == std::errc()) out.push_back(n);
    i = std::max<size_t>(i + 1, static_cast<size_t>(end - text.data()));
  }
  return out;
}

KernelFigures FiguresOf(const KernelTensor& kernel, const Statistics& stats) {
  KernelFigures out{kernel.dtype, ShapeOf(kernel.shape), {}, {}};
  for (size_t k = 0; k < kStatCount; ++k) {
    if (stats[k]) out.stats[k] = Shortest(*stats[k]);
  }
  return out;
}

std::string RelativeText(float diff, float golden) {
  if (golden == 0) return std::string(kNotAvailableCell);
  const float relative = std::fabs(diff / golden * 100);
  return std::isnan(relative) ? "Nan" : PyRepr(Shortest(relative)) + "%";
}

/// Half of the larger value or more apart in Max, Min or Norm. A Mean near zero says nothing.
bool AnyFarApart(const Statistics& a, const Statistics& b) {
  const auto far = [&](size_t k) { return a[k] && b[k] && IsFarApart(*a[k], *b[k]); };
  return far(kMax) || far(kMin) || far(kNorm);
}

bool HasStatistics(const Statistics& s) {
  return std::any_of(s.begin(), s.end(), [](const auto& v) { return v.has_value(); });
}

/// Checksums of one kind, which their length says.
bool HaveChecksums(const KernelTensor& a, const KernelTensor& b) {
  return !a.checksum.empty() && a.checksum.size() == b.checksum.size();
}

/// Lines that have only checksums agree in them, or do not; without a figure in common nothing is said.
void JudgeChecksums(const KernelTensor& a, const KernelTensor& b, KernelRow* row) {
  if (!HaveChecksums(a, b)) {
    row->cells[kMessage] = "NPU and bench have no statistic in common.";
    row->finding.reset();
    return;
  }
  row->accuracy = a.checksum == b.checksum ? "Yes" : "No";
  if (a.checksum != b.checksum) row->cells[kMessage] = "Checksums of NPU and bench do not match.";
}

/// A file as statistic.csv would list it.
StatusOr<KernelTensor> LineOf(const KernelTensor& kernel) {
  MSP_ASSIGN_OR_RETURN(const OpenArray array, OpenKernel(kernel));
  KernelTensor out = kernel;
  out.file = PlaceOf(kernel);
  out.dtype = DTypeName(array.tensor().dtype);
  out.shape = fmt::format("({})", fmt::join(array.tensor().shape, ","));
  out.stats = StatTexts(array, false);
  return out;
}

/// What MindSpore calls the types of statistic.csv is what numpy calls them, but for what numpy has no name for.
bool SameType(const std::string& a, const std::string& b) {
  return a == b || (a == "bfloat16" && b == "float32") || (a == "float32" && b == "bfloat16");
}

}  // namespace

StatusOr<KernelFigures> MeasureKernel(const KernelTensor& kernel) {
  if (kernel.line) {
    Statistics stats;
    for (size_t k = 0; k < kStatCount; ++k) stats[k] = Statistic(kernel.stats[k]);
    KernelFigures out = FiguresOf(kernel, stats);
    if (!HasStatistics(stats)) out.checksum = kernel.checksum;
    return out;
  }
  MSP_ASSIGN_OR_RETURN(const OpenArray array, OpenKernel(kernel));
  KernelFigures out = FiguresOf(array);
  if (array.stats.count == 0) out.stats = {};
  return out;
}

KernelRow StatisticRow(const KernelPair& pair, bool csv) {
  KernelRow row;
  row.cells.resize(KernelTitles(false).size());
  std::array<Statistics, 2> sides;
  std::array<KernelTensor, 2> lines;
  for (const size_t side : {0, 1}) {
    const KernelTensor* kernel = side == 0 ? pair.target : pair.golden;
    if (!kernel) continue;
    StatusOr<KernelTensor> line = kernel->line ? *kernel : LineOf(*kernel);
    if (!line.ok()) {
      row.unread = true;
      row.cells[kName + side] = kernel->key;
      row.cells[kMessage] = "Dump file not found or read failed: " + OneLine(line.status().message());
      return row;
    }
    lines[side] = std::move(*line);
    sides[side] = DescribeLine(lines[side], side, csv, &row);
  }
  const auto& [a, b] = sides;
  if (!pair.target || !pair.golden) {
    NoteMissing(pair, &row);
    return row;
  }
  row.finding = FindingOf(*pair.target, {FiguresOf(lines[0], a), FiguresOf(lines[1], b)});
  if (HaveChecksums(lines[0], lines[1])) {
    row.finding->target.checksum = lines[0].checksum;
    row.finding->golden.checksum = lines[1].checksum;
  }
  std::string& message = row.cells[kMessage];
  if (ShapeOf(lines[0].shape) != ShapeOf(lines[1].shape)) message = "Tensor shapes do not match.";
  const bool mixed = pair.target->line != pair.golden->line;  // a file of numpy has bfloat16 as float32
  if (mixed ? !SameType(lines[0].dtype, lines[1].dtype) : lines[0].dtype != lines[1].dtype) {
    message += (message.empty() ? "" : " ") + std::string("Dtype of NPU and bench Tensor do not match. Skipped.");
  }
  if (!message.empty()) return row;
  bool any = false;
  for (size_t k = 0; k < kStatCount; ++k) {
    if (!a[k] || !b[k]) continue;
    any = true;
    const float diff = *a[k] - *b[k];
    row.cells[kFirstMetric + k] = NumberText(Shortest(diff), csv);
    row.cells[kFirstMetric + (kStatCount + k)] = RelativeText(diff, *b[k]);
  }
  if (any) {
    row.accuracy = AnyFarApart(a, b) ? "No" : "Yes";
  } else {
    JudgeChecksums(lines[0], lines[1], &row);
  }
  row.cells[kAccuracy] = row.accuracy;
  return row;
}

std::vector<std::string> KernelTitles(bool tensors) {
  Cells out = {"NPU Name", "Bench Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape"};
  const auto add = [&](std::initializer_list<const char*> names) { out.insert(out.end(), names.begin(), names.end()); };
  add({"NPU max", "NPU min", "NPU mean", "NPU l2norm", "Bench max", "Bench min", "Bench mean", "Bench l2norm"});
  add({"Accuracy Reached or Not", "Err_message"});
  if (tensors) {
    for (const Metric* metric : kMetrics) out.emplace_back(metric->title);
    return out;
  }
  add({"Max diff", "Min diff", "Mean diff", "L2norm diff"});
  add({"MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr", "NPU CSV File", "Bench CSV File"});
  return out;
}

}  // namespace msprobe
