#include "bindings/monitor/monitor_journal.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "bindings/python/framework.h"
#include "bindings/python/host_tensor.h"
#include "bindings/python/raise.h"
#include "bindings/python/tensor_record.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

CsvCell CellFrom(nb::handle value) {
  if (value.is_none()) return {};
  if (PyBool_Check(value.ptr())) return CsvCell::Text(value.ptr() == Py_True ? "True" : "False");
  if (PyLong_Check(value.ptr())) return CsvCell::Integer(nb::cast<int64_t>(value));
  if (PyFloat_Check(value.ptr())) return CsvCell::Real(nb::cast<double>(value));
  return CsvCell::Text(nb::cast<std::string>(nb::str(value)));
}

constexpr size_t kMostKeptLooks = 16;

// "Float32", "BFloat16", "UInt8": as MindSpore says it.
std::string MindSporeName(DType dtype) {
  std::string name(DTypeName(dtype));
  if (name.starts_with("bfloat")) return "BF" + name.substr(2);
  if (name.starts_with("uint")) return "UI" + name.substr(2);
  if (!name.empty() && name[0] >= 'a' && name[0] <= 'z') name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return name;
}

}  // namespace

MonitorJournal::MonitorJournal(const std::string& directory, double eps, int digits, int64_t steps_per_file, bool csv,
                               bool events, const std::vector<std::tuple<std::string, std::optional<double>>>& rules) {
  JournalOptions options{directory, eps, digits, steps_per_file, csv, events, true, {}, nullptr};
  if (framework().names().framework == "mindspore") options.dtype_name = MindSporeName;
  for (const auto& [name, threshold] : rules) {
    const bool nan = name == AlertRuleName(AlertRule::Kind::kNan);
    options.rules.push_back({nan ? AlertRule::Kind::kNan : AlertRule::Kind::kTurbulence, threshold});
  }
  auto opened = Journal::Open(std::move(options));
  Raise(opened.status());
  journal_ = std::move(*opened);
}

std::vector<size_t> MonitorJournal::Take(nb::list series, nb::list tensors, int threads, bool often) {
  if (series.size() != tensors.size()) throw nb::value_error("as many series as tensors");
  std::vector<uint32_t> numbers;
  std::vector<PyObject*> items;
  for (const nb::handle number : series) numbers.push_back(nb::cast<uint32_t>(number));
  for (const nb::handle tensor : tensors) items.push_back(tensor.ptr());
  return TakeItems(numbers, items, threads, often);
}

std::vector<size_t> MonitorJournal::TakeItems(const std::vector<uint32_t>& series,
                                              const std::vector<PyObject*>& tensors, int threads, bool often) {
  // Kept for the next call; taken from there while it is in use, for what Python frees meanwhile may call this again.
  // NOLINTNEXTLINE(clang-diagnostic-exit-time-destructors): owns no object of Python
  static thread_local std::vector<std::unique_ptr<TensorLook>> kept;
  std::vector<std::unique_ptr<TensorLook>> looks = std::exchange(kept, {});
  std::vector<size_t> left, read;  // positions; looks[i] is of read[i]
  std::vector<uint32_t> numbers;
  std::vector<TensorView> views;
  journal_->Announce(series);
  int64_t elements = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (looks.size() == read.size()) looks.push_back(std::make_unique<TensorLook>());
    TensorLook& look = *looks[read.size()];
    if (!IsPlainTensor(tensors[i]) || !framework().LookAt(tensors[i], &look)) {
      left.push_back(i);
      continue;
    }
    if (const TensorSummary* known = often ? memo_.Find(tensors[i], look) : nullptr) {
      journal_->PutSummary(series[i], *known, look.view());
      continue;
    }
    elements += look.count;
    numbers.push_back(series[i]);
    read.push_back(i);
    views.push_back(look.view());
  }
  if (!read.empty()) {
    std::vector<TensorSummary> summaries;
    WithoutGilFor(elements, [&] { journal_->Take(numbers, views, threads, &summaries); });
    for (size_t i = 0; often && i < read.size(); ++i) memo_.Add(tensors[read[i]], *looks[i], summaries[i]);
  }
  if (looks.size() <= kMostKeptLooks) kept = std::move(looks);
  return left;
}

bool MonitorJournal::TakeOne(uint32_t series, PyObject* tensor, int threads) {
  TensorLook look;
  journal_->Announce({&series, 1});
  if (!IsPlainTensor(tensor) || !framework().LookAt(tensor, &look)) return false;
  const TensorView view = look.view();
  WithoutGilFor(look.count, [&] { journal_->Take({&series, 1}, {&view, 1}, threads); });
  return true;
}

bool MonitorJournal::Read(PyObject* tensor, int threads, TensorReading* out) {
  TensorLook look;
  if (!IsPlainTensor(tensor) || !framework().LookAt(tensor, &look)) return false;
  out->dtype = look.dtype;
  out->shape.assign(look.shape, look.shape + look.ndim);
  if (const TensorSummary* known = memo_.Find(tensor, look)) {
    out->summary = *known;
    return true;
  }
  WithoutGilFor(look.count, [&] { out->summary = journal_->Summarize(look.view(), threads); });
  memo_.Add(tensor, look, out->summary);
  return true;
}

TensorReading MonitorJournal::ReadMemory(const TensorView& view, int threads) {
  TensorReading out{{}, view.dtype, {view.shape, view.shape + view.ndim}};
  int64_t count = 1;
  for (const int64_t length : out.shape) count *= length;
  WithoutGilFor(count, [&] { out.summary = journal_->Summarize(view, threads); });
  return out;
}

void MonitorJournal::PutReading(uint32_t series, const TensorReading& reading) {
  const TensorView like{nullptr, reading.dtype, static_cast<int>(reading.shape.size()), reading.shape.data(), nullptr};
  journal_->PutSummary(series, reading.summary, like);
}

void MonitorJournal::PutSummary(uint32_t series, const std::vector<double>& numbers, const std::vector<int64_t>& shape,
                                const std::string& dtype) {
  if (numbers.size() != 7 || shape.size() > kMaxDims) throw nb::value_error("7 numbers and at most 64 dimensions");
  TensorSummary summary;
  summary.readable = true;
  Stats& s = summary.stats;
  s.count = static_cast<int64_t>(numbers[0]);
  s.min = numbers[1], s.max = numbers[2], s.mean = numbers[3], s.norm = numbers[4];
  s.int_min = static_cast<int64_t>(s.min), s.int_max = static_cast<int64_t>(s.max);
  s.uint_min = static_cast<uint64_t>(s.min), s.uint_max = static_cast<uint64_t>(s.max);
  s.nan_count = static_cast<int64_t>(numbers[5]);
  summary.near_zero = static_cast<int64_t>(numbers[6]);
  const TensorView like{nullptr, ParseDType(dtype), static_cast<int>(shape.size()), shape.data(), nullptr};
  journal_->PutSummary(series, summary, like);
}

void MonitorJournal::Put(uint32_t series, nb::list values) {
  std::vector<CsvCell> cells;
  for (const nb::handle value : values) cells.push_back(CellFrom(value));
  journal_->Put(series, std::move(cells));
}

void MonitorJournal::Drop() {
  if (before_use) before_use();
  journal_->Drop();
}

std::vector<uint32_t> MonitorJournal::Heard(bool ever) {
  if (before_use) before_use();
  return journal_->Heard(ever);
}

nb::dict MonitorJournal::Write(int64_t step) {
  StepReport report;
  if (before_use) before_use();
  memo_.Clear();
  {
    const nb::gil_scoped_release release;
    report = journal_->Write(step);
  }
  nb::dict out;
  nb::list alarms;
  for (const SeriesAlarm& a : report.alarms) {
    alarms.append(nb::make_tuple(a.tag, a.statistic, a.rule, a.value, a.mean));
  }
  out["rows"] = report.rows;
  out["bytes"] = report.bytes;
  out["same_rows"] = report.same_rows;
  out["alarms"] = alarms;
  out["error"] = report.status.message();
  return out;
}

nb::list MonitorJournal::Rows(uint32_t table) {
  if (before_use) before_use();
  nb::list rows;
  for (const Journal::Row& row : journal_->LastRows(table)) {
    rows.append(nb::make_tuple(row.name.vpp_stage, row.name.name, row.name.micro_step, row.values));
  }
  return rows;
}

}  // namespace msprobe
