#include "report/kernel_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/text.h"
#include "compare/two_tensors.h"
#include "report/columns.h"
#include "report/kernel_dump.h"
#include "report/table.h"
#include "tensor/tensor_file.h"

namespace msprobe {
namespace {

constexpr size_t kRowsPerBlock = 16;
using KernelPlace = std::pair<int, int>;  // rank, step
using Cells = std::vector<std::string>;

std::string PlaceText(KernelPlace at) { return fmt::format("rank {}, step {}", at.first, at.second); }

struct KernelPair {
  const KernelTensor *target = nullptr, *golden = nullptr;  // one may be null
};

/// Runs of one kernel stand against each other in the order of time, those of one graph first.
void PairRuns(std::vector<const KernelTensor*> mine, std::vector<const KernelTensor*> theirs,
              std::vector<KernelPair>* out) {
  const auto earlier = [](const KernelTensor* a, const KernelTensor* b) { return a->time < b->time; };
  std::stable_sort(mine.begin(), mine.end(), earlier);
  std::stable_sort(theirs.begin(), theirs.end(), earlier);
  std::unordered_map<std::string_view, std::deque<size_t>> by_graph;
  for (size_t k = 0; k < theirs.size(); ++k) by_graph[theirs[k]->graph].push_back(k);
  std::vector<const KernelTensor*> partner(mine.size());
  for (size_t i = 0; i < mine.size(); ++i) {
    const auto same = by_graph.find(mine[i]->graph);
    if (same == by_graph.end() || same->second.empty()) continue;
    partner[i] = std::exchange(theirs[same->second.front()], nullptr);
    same->second.pop_front();
  }
  size_t free = 0;
  for (size_t i = 0; i < mine.size(); ++i) {
    while (free < theirs.size() && !theirs[free]) ++free;
    if (!partner[i] && free < theirs.size()) partner[i] = std::exchange(theirs[free], nullptr);
  }
  for (size_t i = 0; i < mine.size(); ++i) out->push_back({mine[i], partner[i]});
  for (const KernelTensor* rest : theirs) {
    if (rest) out->push_back({nullptr, rest});
  }
}

std::vector<KernelPair> PairKernels(const KernelList& target, const KernelList& golden) {
  std::map<std::string_view, std::array<std::vector<const KernelTensor*>, 2>> by_key;
  for (const KernelTensor& t : target.tensors) by_key[t.key][0].push_back(&t);
  for (const KernelTensor& t : golden.tensors) by_key[t.key][1].push_back(&t);
  std::vector<KernelPair> out;
  for (auto& [key, runs] : by_key) PairRuns(std::move(runs[0]), std::move(runs[1]), &out);
  return out;
}

// ---- rows

struct KernelRow {
  Cells cells;
  std::string_view accuracy;  // "Yes", "No", "None", ""
  bool unread = false;
};

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

Cells Titles(bool tensors) {
  Cells out = {"NPU Name", "Bench Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape"};
  const auto add = [&](std::initializer_list<const char*> names) { out.insert(out.end(), names.begin(), names.end()); };
  add({"NPU max", "NPU min", "NPU mean", "NPU l2norm", "Bench max", "Bench min", "Bench mean", "Bench l2norm"});
  add({"Accuracy Reached or Not", "Err_message"});
  if (tensors) {
    out.insert(out.end(), kMetricNames.begin(), kMetricNames.end());
    return out;
  }
  add({"Max diff", "Min diff", "Mean diff", "L2norm diff"});
  add({"MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr", "NPU CSV File", "Bench CSV File"});
  return out;
}

std::string NumberText(double v, bool csv) {
  if (std::isinf(v)) return std::string(csv ? " " : "") + (v > 0 ? "inf" : "-inf");  // no name of a cell range
  return PyRepr(v);
}

void NoteMissing(const KernelPair& pair, KernelRow* row) {
  std::string& message = row->cells[kMessage];  // it may say that the other one cannot be read
  message += (message.empty() ? "" : " ") + fmt::format("{} has no such kernel.", pair.target ? "Bench" : "NPU");
}

// ---- values

struct OpenArray {
  std::optional<TensorFile> file;
  const FileTensor* tensor = nullptr;
  Stats stats;
};

StatusOr<OpenArray> OpenKernel(const KernelTensor& kernel) {
  OpenArray out;
  MSP_ASSIGN_OR_RETURN(out.file, TensorFile::Open(kernel.file));
  out.tensor = out.file->tensor();
  if (!out.tensor || !ComputeStats(out.tensor->view(), &out.stats)) {
    return BadInput(kernel.file + " holds no array of numbers");
  }
  return out;
}

/// As Python writes a tuple, in brackets: "[2, 3]", "[3,]", "[]".
std::string ShapeText(const std::vector<int64_t>& shape) {
  return fmt::format("[{}{}]", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

void DescribeArray(const KernelTensor& kernel, const OpenArray& array, size_t side, bool csv, KernelRow* row) {
  Cells& cells = row->cells;
  const FileTensor& t = *array.tensor;
  cells[kName + side] = kernel.file;
  cells[kType + side] = DTypeName(t.dtype);
  cells[kShapeText + side] = ShapeText(t.shape);
  if (array.stats.count == 0) return;
  std::string* stats = &cells[side == 0 ? kTargetStats : kGoldenStats];
  const Stats& s = array.stats;
  if (t.dtype == DType::kBool) {
    stats[kMax] = s.max != 0 ? "True" : "False";
    stats[kMin] = s.min != 0 ? "True" : "False";
  } else if (IsInteger(t.dtype)) {
    const bool is_unsigned = t.dtype >= DType::kUInt8 && t.dtype <= DType::kUInt64;
    stats[kMax] = is_unsigned ? std::to_string(s.uint_max) : std::to_string(s.int_max);
    stats[kMin] = is_unsigned ? std::to_string(s.uint_min) : std::to_string(s.int_min);
  } else {
    stats[kMax] = NumberText(s.max, csv);
    stats[kMin] = NumberText(s.min, csv);
  }
  stats[kMean] = NumberText(s.mean, csv);
  stats[kNorm] = NumberText(s.norm, csv);
}

/// Why two arrays have no metrics; "" when they have.
std::string Unlike(const OpenArray& a, const OpenArray& b) {
  if (a.stats.count == 0 || b.stats.count == 0) return "This is empty data, can not compare.";
  std::string out;
  const auto say = [&out](const char* text) { out += (out.empty() ? "" : " ") + std::string(text); };
  if (a.tensor->shape.empty() || b.tensor->shape.empty()) say("This is type of scalar data, can not compare.");
  if (a.tensor->shape != b.tensor->shape) say("Shape of NPU and bench Tensor do not match.");
  if (a.tensor->dtype != b.tensor->dtype) say("Dtype of NPU and bench Tensor do not match. Skipped.");
  return out;
}

KernelRow ArrayRow(const KernelPair& pair, bool csv) {
  KernelRow row;
  row.cells.resize(Titles(true).size());
  std::array<std::optional<OpenArray>, 2> arrays;
  for (const size_t side : {0, 1}) {
    const KernelTensor* kernel = side == 0 ? pair.target : pair.golden;
    if (!kernel) continue;
    StatusOr<OpenArray> opened = OpenKernel(*kernel);
    if (!opened.ok()) {
      row.unread = true;
      row.cells[kName + side] = kernel->file;
      row.cells[kMessage] = "Dump file not found or read failed: " + OneLine(opened.status().message());
      continue;
    }
    DescribeArray(*kernel, *opened, side, csv, &row);
    arrays[side] = std::move(*opened);
    arrays[side]->tensor = arrays[side]->file->tensor();
  }
  if (!pair.target || !pair.golden) NoteMissing(pair, &row);
  if (!arrays[0] || !arrays[1]) return row;
  row.cells[kMessage] = Unlike(*arrays[0], *arrays[1]);
  if (!row.cells[kMessage].empty()) return row;
  const FileTensor& target = *arrays[0]->tensor;
  TensorDiff diff = DiffTwoTensors(target, *arrays[1]->tensor);
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

std::string RelativeText(float diff, float golden) {
  if (golden == 0) return std::string(kNotAvailableCell);
  const float relative = std::fabs(diff / golden * 100);
  return std::isnan(relative) ? "Nan" : PyRepr(Shortest(relative)) + "%";
}

/// Half of the larger value or more apart in Max, Min or Norm. A Mean near zero says nothing.
bool IsFarApart(const Statistics& a, const Statistics& b) {
  constexpr double kMost = 0.5, kSmallest = 1e-10;
  for (const size_t k : {kMax, kMin, kNorm}) {
    if (!a[k] || !b[k] || (std::isnan(*a[k]) && std::isnan(*b[k])) || *a[k] == *b[k]) continue;
    const double x = *a[k], y = *b[k];
    if (!(std::fabs(x - y) / (std::max(std::fabs(x), std::fabs(y)) + kSmallest) <= kMost)) return true;
  }
  return false;
}

KernelRow StatisticRow(const KernelPair& pair, bool csv) {
  KernelRow row;
  row.cells.resize(Titles(false).size());
  Statistics a, b;
  if (pair.target) a = DescribeLine(*pair.target, 0, csv, &row);
  if (pair.golden) b = DescribeLine(*pair.golden, 1, csv, &row);
  if (!pair.target || !pair.golden) {
    NoteMissing(pair, &row);
    return row;
  }
  std::string& message = row.cells[kMessage];
  if (pair.target->shape != pair.golden->shape) message = "Tensor shapes do not match.";
  if (pair.target->dtype != pair.golden->dtype) {
    message += (message.empty() ? "" : " ") + std::string("Dtype of NPU and bench Tensor do not match. Skipped.");
  }
  if (!message.empty()) return row;
  for (size_t k = 0; k < kStatCount; ++k) {
    if (!a[k] || !b[k]) continue;
    const float diff = *a[k] - *b[k];
    row.cells[kFirstMetric + k] = NumberText(Shortest(diff), csv);
    row.cells[kFirstMetric + (kStatCount + k)] = RelativeText(diff, *b[k]);
  }
  row.accuracy = IsFarApart(a, b) ? "No" : "Yes";
  row.cells[kAccuracy] = row.accuracy;
  return row;
}

// ---- one step of one rank

struct KernelBlock {
  RowBlock rows;
  KernelTable counts;
};

void CountRow(const KernelPair& pair, const KernelRow& row, KernelTable* counts) {
  ++counts->rows;
  counts->target_only += pair.golden == nullptr;
  counts->golden_only += pair.target == nullptr;
  counts->yes += row.accuracy == "Yes";
  counts->no += row.accuracy == "No";
  counts->unread += row.unread;
}

Status WriteRows(const TableSpec& spec, const std::vector<KernelPair>& pairs, KernelTable* out) {
  const bool csv = EndsWith(spec.path, ".csv");
  MSP_ASSIGN_OR_RETURN(const std::unique_ptr<ResultTable> table,
                       csv ? CreateCsvTable(spec) : CreateXlsxTable(spec, pairs.size()));
  const auto make = [&](size_t b) -> StatusOr<KernelBlock> {
    KernelBlock block;
    for (size_t i = b * kRowsPerBlock; i < std::min(pairs.size(), (b + 1) * kRowsPerBlock); ++i) {
      const KernelRow row = out->tensors ? ArrayRow(pairs[i], csv) : StatisticRow(pairs[i], csv);
      CountRow(pairs[i], row, &block.counts);
      AppendTextRow(spec, {row.cells.begin(), row.cells.end()}, &block.rows);
    }
    return block;
  };
  const auto take = [&](size_t, KernelBlock&& block) -> Status {
    if (InterruptRequested()) return Interrupted();
    out->rows += block.counts.rows;
    out->target_only += block.counts.target_only;
    out->golden_only += block.counts.golden_only;
    out->yes += block.counts.yes;
    out->no += block.counts.no;
    out->unread += block.counts.unread;
    return table->Take(std::move(block.rows));
  };
  MSP_RETURN_IF_ERROR(ParallelOrdered<KernelBlock>((pairs.size() + kRowsPerBlock - 1) / kRowsPerBlock, 64, make, take));
  MSP_RETURN_IF_ERROR(table->Commit());
  out->path = table->paths().front();
  return OkStatus();
}

using KernelPlaces = std::map<KernelPlace, std::vector<const KernelDirectory*>>;

StatusOr<KernelList> ReadPlace(const std::vector<const KernelDirectory*>& directories, KernelReport* report) {
  KernelList out;
  for (const KernelDirectory* directory : directories) MSP_RETURN_IF_ERROR(ReadKernels(*directory, &out));
  if (out.passed_over > 0) {
    report->warnings.push_back(fmt::format("{} files or lines below {} are no kernel's and were passed over",
                                           out.passed_over, directories.front()->path));
  }
  if (out.tensors.empty()) return BadInput(directories.front()->path + " holds no kernels");
  return out;
}

StatusOr<KernelTable> ComparePlace(const KernelSettings& settings, KernelPlace at, const std::string& time,
                                   const std::vector<const KernelDirectory*>& target,
                                   const std::vector<const KernelDirectory*>& golden, KernelReport* report) {
  MSP_ASSIGN_OR_RETURN(const KernelList mine, ReadPlace(target, report));
  MSP_ASSIGN_OR_RETURN(const KernelList theirs, ReadPlace(golden, report));
  if (mine.kind != theirs.kind) {
    const bool first = mine.kind == KernelKind::kFiles;
    return BadInput(fmt::format("{} holds tensors and {} only statistics: dump both runs in the same way",
                                (first ? target : golden).front()->path, (first ? golden : target).front()->path));
  }
  KernelTable out;
  out.rank = at.first;
  out.step = at.second;
  out.tensors = mine.kind == KernelKind::kFiles;
  TableSpec spec;
  spec.path = JoinPath(settings.output, fmt::format("compare_result_{}_{}_{}.{}", at.first, at.second, time,
                                                    settings.xlsx ? "xlsx" : "csv"));
  spec.columns = Titles(out.tensors);
  MSP_RETURN_IF_ERROR(WriteRows(spec, PairKernels(mine, theirs), &out));
  return out;
}

KernelPlaces Chosen(const std::vector<KernelDirectory>& all, const KernelSettings& settings) {
  const auto wanted = [](const std::vector<int>& list, int n) {
    return list.empty() || std::find(list.begin(), list.end(), n) != list.end();
  };
  KernelPlaces out;
  for (const KernelDirectory& d : all) {
    if (wanted(settings.ranks, d.rank) && wanted(settings.steps, d.step)) out[{d.rank, d.step}].push_back(&d);
  }
  return out;
}

void NoteLeftOut(const KernelPlaces& have, const KernelPlaces& other, const std::string& lacks, KernelReport* report) {
  std::string names;
  for (const auto& [at, directories] : have) {
    if (!other.contains(at)) names += (names.empty() ? "" : "; ") + PlaceText(at);
  }
  if (!names.empty()) report->warnings.push_back(lacks + " has no kernels of " + names + ": left out");
}

Status NothingFound(const KernelSettings& settings, const std::vector<KernelDirectory>& target,
                    const std::vector<KernelDirectory>& golden) {
  for (const auto& [path, found] : {std::pair(settings.target, &target), std::pair(settings.golden, &golden)}) {
    if (found->empty()) {
      return BadInput(path + " holds no kernel dumps (rank_N/NET/GRAPH/STEP with .npy files or statistic.csv): for " +
                      "dumps of modules and functions leave out --rank and --step and give the rank's or step's " +
                      "directory");
    }
  }
  return BadInput(settings.target + " and " + settings.golden + " have no rank and step in common" +
                  (settings.ranks.empty() && settings.steps.empty() ? "" : " that --rank and --step choose") +
                  ": compare kernel dumps of the same ranks and steps");
}

}  // namespace

StatusOr<KernelReport> CompareKernels(const KernelSettings& settings) {
  MSP_ASSIGN_OR_RETURN(const std::vector<KernelDirectory> all_target, FindKernels(settings.target));
  MSP_ASSIGN_OR_RETURN(const std::vector<KernelDirectory> all_golden, FindKernels(settings.golden));
  const KernelPlaces target = Chosen(all_target, settings), golden = Chosen(all_golden, settings);
  KernelReport report;
  NoteLeftOut(target, golden, settings.golden, &report);
  NoteLeftOut(golden, target, settings.target, &report);
  const std::string time = TimestampNow();
  bool any = false;
  for (const auto& [at, directories] : target) {
    const auto partner = golden.find(at);
    if (partner == golden.end()) continue;
    if (!std::exchange(any, true)) MSP_RETURN_IF_ERROR(MakeOutputDir(settings.output));
    StatusOr<KernelTable> table = ComparePlace(settings, at, time, directories, partner->second, &report);
    if (table.ok()) {
      report.tables.push_back(std::move(*table));
    } else if (table.status().code() == Code::kBadInput) {
      report.failures.emplace_back(PlaceText(at), table.status());  // the others can be compared
    } else {
      return table.status();
    }
  }
  if (!any) return NothingFound(settings, all_target, all_golden);
  if (report.tables.empty()) return report.failures.front().second;
  return report;
}

std::string KernelReportText(const KernelReport& report) {
  std::string out;
  for (const KernelTable& t : report.tables) {
    out += fmt::format("compare (kernels, {}), {}: {} rows, {} reach the accuracy, {} do not",
                       t.tensors ? "tensors" : "statistics", PlaceText({t.rank, t.step}), t.rows, t.yes, t.no);
    out += fmt::format("; {} only in the target, {} only in the golden run\n  result: {}\n", t.target_only,
                       t.golden_only, OneLine(t.path));
  }
  return out;
}

std::string KernelReportJson(const KernelReport& report) {
  std::string out = "{\"tables\": [";
  for (const KernelTable& t : report.tables) {
    if (&t != report.tables.data()) out += ", ";
    out += fmt::format("{{\"rank\": {}, \"step\": {}, \"mode\": \"kernel_{}\", \"file\": ", t.rank, t.step,
                       t.tensors ? "tensor" : "statistics");
    AppendJsonString(out, t.path);
    out += fmt::format(
        ", \"rows\": {}, \"reached\": {}, \"not_reached\": {}, \"target_only\": {}, \"golden_only\": {}, \"unread\": "
        "{}}}",
        t.rows, t.yes, t.no, t.target_only, t.golden_only, t.unread);
  }
  out += "], \"failures\": [";
  for (const auto& [label, status] : report.failures) {
    if (&label != &report.failures.front().first) out += ", ";
    AppendJsonString(out += "{\"label\": ", label);
    AppendJsonString(out += ", \"why\": ", status.message());
    out += "}";
  }
  return out + "]}\n";
}

}  // namespace msprobe
