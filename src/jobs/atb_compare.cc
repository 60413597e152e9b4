#include "jobs/atb_compare.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/message.h"
#include "base/parallel.h"
#include "base/text.h"
#include "compare/values/tensor_pairs.h"
#include "sheet/sheet_reader.h"
#include "sheet/table.h"
#include "tensor/files/atb_reader.h"
#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

constexpr size_t kColumns = 15;
enum Column { kDevice, kExecution, kOpName, kOpType, kOpId, kInOut, kIndex, kType, kFormat, kShapeText, kFirstStat };
constexpr size_t kPath = 14;
constexpr size_t kRowsPerBlock = 16;
constexpr uint64_t kMostTensors = 2'000'000;

struct AtbTensor {
  std::string name;  // "0_Layer/3_Linear/inTensor.0"
  std::string device, execution, dtype, shape;
  std::array<std::string, kStatCount> stats;
  std::string file;  // below the directory of the dump; "" in a dump of statistics
};

struct AtbDump {
  bool tensors = false;
  std::vector<AtbTensor> list;
  uint64_t passed_over = 0;  // rows that are not a tensor's
};

/// False where the name of the op and its ids do not fit together.
bool NameOf(const std::vector<SheetCell>& row, std::string* out) {
  const auto names = Split(row[kOpName].text, '/'), ids = Split(row[kOpId].text, '_');
  if (names.size() != ids.size()) return false;
  for (size_t i = 0; i < names.size(); ++i) {
    *out += std::string(ids[i]) + "_" + std::string(names[i]) + "/";
  }
  *out += row[kInOut].text + "." + row[kIndex].text;
  return true;
}

/// The file's place in the dump: where the run wrote it, the dump lay four levels below "atb_dump_data".
bool FileOf(const std::string& path, std::string* out) {
  const size_t root = path.rfind("atb_dump_data");
  if (root == std::string::npos) return false;
  size_t at = root;
  for (int level = 0; level < 4; ++level) {
    at = path.find('/', at);
    if (at == std::string::npos) return false;
    ++at;
  }
  *out = path.substr(at);
  return !out->empty();
}

StatusOr<AtbDump> ReadDump(const std::string& directory) {
  const std::string path = JoinPath(directory, "statistic.csv");
  if (!IsDirectory(directory) || !IsRegularFile(path)) {
    return BadInput(Msg("{} is not a dump of ATB: -m atb takes two directories that hold statistic.csv", directory));
  }
  AtbDump out;
  bool any = false;
  const auto take = [&](const std::vector<SheetCell>& row, bool first) -> Status {
    if (first) return OkStatus();
    if (!std::exchange(any, true)) out.tensors = row.back().text != kNotAvailableCell;
    AtbTensor tensor;
    const bool fits =
        row.size() == kColumns && NameOf(row, &tensor.name) && (!out.tensors || FileOf(row[kPath].text, &tensor.file));
    if (!fits) {
      ++out.passed_over;
      return OkStatus();
    }
    if (out.list.size() == kMostTensors) return BadInput(Msg("{} lists more tensors than any dump", path));
    tensor.device = row[kDevice].text;
    tensor.execution = row[kExecution].text;
    tensor.dtype = row[kType].text;
    tensor.shape = row[kShapeText].text;
    for (size_t k = 0; k < kStatCount; ++k) tensor.stats[k] = row[kFirstStat + k].text;
    out.list.push_back(std::move(tensor));
    return OkStatus();
  };
  MSP_RETURN_IF_ERROR(ReadCsv(path, take));
  if (out.list.empty()) return BadInput(Msg("{} lists no tensors: is it the statistic.csv of an ATB dump?", path));
  return out;
}

/// Golden partner of each tensor, -1 without: the next of the same name and execution that is free.
std::vector<int64_t> Pair(const AtbDump& target, const AtbDump& golden, uint64_t* golden_only) {
  std::map<std::pair<std::string_view, std::string_view>, std::pair<std::vector<int64_t>, size_t>> by_name;
  for (size_t i = 0; i < golden.list.size(); ++i) {
    by_name[{golden.list[i].name, golden.list[i].execution}].first.push_back(static_cast<int64_t>(i));
  }
  std::vector<int64_t> out(target.list.size(), -1);
  uint64_t taken = 0;
  for (size_t i = 0; i < target.list.size(); ++i) {
    const auto it = by_name.find({target.list[i].name, target.list[i].execution});
    if (it == by_name.end() || it->second.second == it->second.first.size()) continue;
    out[i] = it->second.first[it->second.second++];
    ++taken;
  }
  *golden_only = golden.list.size() - taken;
  return out;
}

// ---- statistics, as the framework computes them: in the dtype of the tensor

/// Statistics of other types are taken in float32.
double InTypeOf(DType t, double v) { return NearestOf(IsFloating(t) && ElementSize(t) == 2 ? t : DType::kFloat32, v); }

using StatTexts = std::array<std::string, kStatCount>;

StatTexts StatsOf(const FileTensor& tensor) {
  StatTexts out;
  out.fill(std::string(kNotAvailableCell));
  Stats s;
  if (tensor.shape.empty() || !ComputeStats(tensor.view(), &s) || s.count == 0) return out;
  if (tensor.dtype == DType::kBool) {
    out[kMax] = s.max != 0 ? "tensor(True)" : "tensor(False)";
    out[kMin] = s.min != 0 ? "tensor(True)" : "tensor(False)";
    return out;
  }
  const bool whole = IsInteger(tensor.dtype);
  const double values[] = {whole ? static_cast<double>(s.int_max) : s.max,
                           whole ? static_cast<double>(s.int_min) : s.min, s.mean, s.norm};
  for (size_t k = 0; k < kStatCount; ++k) {
    const double v = InTypeOf(tensor.dtype, values[k]);
    if (std::isnan(v)) continue;
    out[k].clear();
    AppendPyRepr(out[k], v);
  }
  return out;
}

// ---- rows

std::string MetricText(const MetricCell& cell) {
  std::string out;
  if (cell.kind == MetricCell::Kind::kNan || cell.kind == MetricCell::Kind::kShapeUnmatched) return "N/A";
  cell.AppendText(&out);
  return out;
}

struct OpenTensor {
  std::unique_ptr<MappedFile> map;
  FileTensor tensor;
};

StatusOr<OpenTensor> OpenFile(const std::string& folder, const AtbTensor& tensor) {
  MSP_ASSIGN_OR_RETURN(const std::string path, FindBelow(folder, tensor.file));
  MSP_ASSIGN_OR_RETURN(MappedFile map, MappedFile::Open(path));
  OpenTensor out;
  out.map = std::make_unique<MappedFile>(std::move(map));
  MSP_ASSIGN_OR_RETURN(out.tensor, ReadAtb(out.map->text(), path));
  return out;
}

/// Metrics, then the statistics of both sides in turn.
std::vector<std::string> TensorCells(const std::string& target_folder, const AtbTensor& target,
                                     const std::string& golden_folder, const AtbTensor& golden, std::string* why) {
  std::vector<std::string> out(kMetricCount + 2 * kStatCount, std::string(kNotAvailableCell));
  const StatusOr<OpenTensor> a = OpenFile(target_folder, target), b = OpenFile(golden_folder, golden);
  for (const auto* side : {&a, &b}) {
    if (!side->ok()) {
      *why = side->status().message();
      continue;
    }
    const StatTexts stats = StatsOf((*side)->tensor);
    for (size_t k = 0; k < kStatCount; ++k) out[kMetricCount + 2 * k + (side == &b)] = stats[k];
  }
  if (!a.ok() || !b.ok()) return out;
  if (a->tensor.shape != b->tensor.shape) return out;
  TensorDiff diff = DiffTwoTensors(a->tensor, b->tensor);
  if (diff.outcome != TensorOutcome::kCompared) return out;
  AddListMetrics(a->tensor, &diff);
  for (size_t k = 0; k < kMetricCount; ++k) out[k] = MetricText(diff.cells[k]);
  return out;
}

bool ReadDouble(const std::string& text, double* out) {
  char* end = nullptr;
  *out = std::strtod(text.c_str(), &end);
  while (end && *end == ' ') ++end;
  return end && end != text.c_str() && *end == '\0';
}

/// Differences, relative errors, then the statistics of both sides in turn.
std::vector<std::string> StatisticCells(const AtbTensor& target, const AtbTensor& golden) {
  std::vector<std::string> out(4 * kStatCount, std::string(kNotAvailableCell));
  for (size_t k = 0; k < kStatCount; ++k) {
    out[2 * kStatCount + 2 * k] = target.stats[k];
    out[2 * kStatCount + 2 * k + 1] = golden.stats[k];
    double a = 0, b = 0;
    if (!ReadDouble(target.stats[k], &a) || !ReadDouble(golden.stats[k], &b)) continue;
    out[k].clear();
    AppendPyRepr(out[k], a - b);
    std::string& relative = out[kStatCount + k];
    if (a - b == 0) {
      relative = "0.0";
    } else if (b != 0) {
      relative.clear();
      AppendPyRepr(relative, std::fabs((a - b) / b * 100));
    }
  }
  return out;
}

std::vector<std::string> Titles(bool tensors) {
  std::vector<std::string> out;
  const auto both = [&](const char* title) {
    out.push_back(std::string("Target ") + title);
    out.push_back(std::string("Golden ") + title);
  };
  for (const char* title : {"Data Name", "Device and PID", "Execution Count", "Data Type", "Data Shape"}) both(title);
  constexpr const char* kStats[] = {"Max", "Min", "Mean", "Norm"};
  if (tensors) {
    for (const Metric* metric : kMetrics)
      out.emplace_back(metric->atb_title.empty() ? metric->title : metric->atb_title);
  } else {
    for (const char* stat : kStats) out.push_back(std::string(stat) + " Diff");
    for (const char* stat : kStats) out.push_back("Relative Err of " + std::string(stat) + "(%)");
  }
  for (const char* stat : kStats) both(stat);
  return out;
}

struct Block {
  RowBlock rows;
  uint64_t unread = 0;
  std::string first_unread;
};

void NotePassedOver(const std::string& directory, const AtbDump& dump, AtbReport* report) {
  if (dump.passed_over == 0) return;
  report->warnings.push_back(Msg("{} rows of {} are not a tensor's and were passed over", dump.passed_over,
                                 JoinPath(directory, "statistic.csv")));
}

}  // namespace

StatusOr<AtbReport> CompareAtb(const std::string& target, const std::string& golden, const std::string& output) {
  MSP_ASSIGN_OR_RETURN(const AtbDump target_dump, ReadDump(target));
  MSP_ASSIGN_OR_RETURN(const AtbDump golden_dump, ReadDump(golden));
  if (target_dump.tensors != golden_dump.tensors) {
    return BadInput(Msg("{} holds tensors and {} only statistics: dump both runs in the same way",
                        (target_dump.tensors ? target : golden), (target_dump.tensors ? golden : target)));
  }
  AtbReport report;
  report.tensors = target_dump.tensors;
  const std::vector<int64_t> partner = Pair(target_dump, golden_dump, &report.golden_only);
  std::vector<size_t> paired;
  for (size_t i = 0; i < partner.size(); ++i) {
    if (partner[i] >= 0) paired.push_back(i);
  }
  report.rows = paired.size();
  report.target_only = partner.size() - paired.size();
  if (paired.empty()) return BadInput(Msg("no tensor of {} has one of the same name in {}", target, golden));
  NotePassedOver(target, target_dump, &report);
  NotePassedOver(golden, golden_dump, &report);
  MSP_RETURN_IF_ERROR(MakeOutputDir(output));
  TableSpec spec;
  spec.path = JoinPath(output, std::string("atb_") + (target_dump.tensors ? "tensor" : "stats") + "_compare_result_" +
                                   TimestampNow() + ".xlsx");
  spec.columns = Titles(target_dump.tensors);
  MSP_ASSIGN_OR_RETURN(const std::unique_ptr<ResultTable> table, CreateXlsxTable(spec, paired.size()));
  const auto make = [&](size_t b) -> StatusOr<Block> {
    Block block;
    for (size_t i = b * kRowsPerBlock; i < std::min(paired.size(), (b + 1) * kRowsPerBlock); ++i) {
      const AtbTensor& x = target_dump.list[paired[i]];
      const AtbTensor& y = golden_dump.list[static_cast<size_t>(partner[paired[i]])];
      std::string why;
      const std::vector<std::string> values =
          target_dump.tensors ? TensorCells(target, x, golden, y, &why) : StatisticCells(x, y);
      if (!why.empty() && block.unread++ == 0) block.first_unread = why;
      std::vector<std::string_view> cells = {x.name,      y.name,  x.device, y.device, x.execution,
                                             y.execution, x.dtype, y.dtype,  x.shape,  y.shape};
      cells.insert(cells.end(), values.begin(), values.end());
      AppendTextRow(*table, cells, &block.rows);
    }
    return block;
  };
  const auto take = [&](size_t, Block&& block) -> Status {
    if (report.unread == 0) report.first_unread = std::move(block.first_unread);
    report.unread += block.unread;
    return table->Take(std::move(block.rows));
  };
  MSP_RETURN_IF_ERROR(ParallelOrdered<Block>((paired.size() + kRowsPerBlock - 1) / kRowsPerBlock, 64, make, take));
  MSP_RETURN_IF_ERROR(table->Commit());
  report.path = table->paths().front();
  if (report.unread > 0) {
    report.warnings.push_back(Msg("{} rows could not be compared because a file could not be read; the first: {}",
                                  report.unread, report.first_unread));
  }
  return report;
}

}  // namespace msprobe
