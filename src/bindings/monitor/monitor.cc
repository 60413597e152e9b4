#include "bindings/monitor/monitor.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/python/framework.h"
#include "bindings/python/host_tensor.h"
#include "bindings/python/tensor_record.h"
#include "monitor/event_file.h"
#include "monitor/journal.h"
#include "monitor/series_reader.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

void Raise(const Status& status) {
  if (!status.ok()) throw nb::value_error(status.message().c_str());
}

CsvCell CellFrom(nb::handle value) {
  if (value.is_none()) return {};
  if (PyBool_Check(value.ptr())) return CsvCell::Text(value.ptr() == Py_True ? "True" : "False");
  if (PyLong_Check(value.ptr())) return CsvCell::Integer(nb::cast<int64_t>(value));
  if (PyFloat_Check(value.ptr())) return CsvCell::Real(nb::cast<double>(value));
  return CsvCell::Text(nb::cast<std::string>(nb::str(value)));
}

// A journal, and what it is asked through.
class MonitorJournal {
 public:
  MonitorJournal(const std::string& directory, double eps, int digits, int64_t steps_per_file, bool csv, bool events,
                 const std::vector<std::tuple<std::string, std::optional<double>>>& rules) {
    JournalOptions options{directory, eps, digits, steps_per_file, csv, events, true, {}};
    for (const auto& [name, threshold] : rules) {
      const bool nan = name == AlertRuleName(AlertRule::Kind::kNan);
      options.rules.push_back({nan ? AlertRule::Kind::kNan : AlertRule::Kind::kTurbulence, threshold});
    }
    auto opened = Journal::Open(std::move(options));
    Raise(opened.status());
    journal_ = std::move(*opened);
  }

  uint32_t AddTable(const std::string& name, std::vector<std::string> columns, bool micro_steps, bool declared) {
    return journal_->AddTable(name, std::move(columns), micro_steps,
                              declared ? Journal::Order::kDeclared : Journal::Order::kArrival);
  }

  uint32_t AddSeries(uint32_t table, int64_t vpp_stage, const std::string& name, int64_t micro_step, uint32_t group,
                     const std::string& tag) {
    return journal_->AddSeries({table, vpp_stage, name, micro_step}, group, tag);
  }

  // The positions of those that are no plain tensors in host memory.
  std::vector<size_t> Take(nb::list series, nb::list tensors, int threads) {
    std::vector<size_t> left;
    std::vector<uint32_t> numbers;
    std::vector<uint32_t> all;
    for (const nb::handle number : series) all.push_back(nb::cast<uint32_t>(number));
    if (all.size() != tensors.size()) throw nb::value_error("as many series as tensors");
    journal_->Announce(all);
    std::vector<std::unique_ptr<TensorLook>> looks;
    int64_t elements = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
      auto look = std::make_unique<TensorLook>();
      const nb::handle tensor = tensors[i];
      if (!IsPlainTensor(tensor.ptr()) || !framework().LookAt(tensor.ptr(), look.get())) {
        left.push_back(i);
        continue;
      }
      elements += look->count;
      numbers.push_back(all[i]);
      looks.push_back(std::move(look));
    }
    std::vector<TensorView> views;
    views.reserve(looks.size());
    for (const auto& look : looks) views.push_back(look->view());
    // The lists hold the tensors meanwhile.
    WithoutGilFor(elements, [&] { journal_->Take(numbers, views, threads); });
    return left;
  }

  // (count, min, max, mean, norm, NaN, near zero) that a device gave of a tensor of this shape and type.
  void PutSummary(uint32_t series, const std::vector<double>& numbers, const std::vector<int64_t>& shape,
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

  void Put(uint32_t series, nb::list values) {
    std::vector<CsvCell> cells;
    for (const nb::handle value : values) cells.push_back(CellFrom(value));
    journal_->Put(series, std::move(cells));
  }

  nb::dict Write(int64_t step) {
    StepReport report;
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
    out["alarms"] = alarms;
    out["error"] = report.status.message();
    return out;
  }

  nb::list Rows(uint32_t table) const {
    nb::list rows;
    for (const Journal::Row& row : journal_->LastRows(table)) {
      rows.append(nb::make_tuple(row.name.vpp_stage, row.name.name, row.name.micro_step, row.values));
    }
    return rows;
  }

  Journal& journal() { return *journal_; }

 private:
  std::unique_ptr<Journal> journal_;
};

class MonitorEvents {
 public:
  explicit MonitorEvents(const std::string& directory) {
    auto created = EventFile::Create(directory);
    Raise(created.status());
    file_.emplace(std::move(*created));
  }
  void AddScalar(const std::string& tag, int64_t step, double value) { file_->AddScalar(tag, step, value); }
  void Flush() { Raise(file_->Flush()); }

 private:
  std::optional<EventFile> file_;
};

nb::dict ReadSeries(const std::string& path) {
  auto opened = SeriesFile::Open(path);
  Raise(opened.status());
  const SeriesFile& file = *opened;
  nb::list all;
  for (size_t i = 0; i < file.series().size(); ++i) {
    const SeriesFile::Series& s = file.series()[i];
    const SeriesFile::Table& table = file.tables()[s.table];
    nb::dict columns;
    for (size_t c = 0; c < table.columns.size(); ++c) {
      nb::list points;
      for (const auto& [step, value] : file.Read(i, c)) points.append(nb::make_tuple(step, value));
      columns[table.columns[c].c_str()] = points;
    }
    nb::dict one;
    one["table"] = table.name;
    one["vpp_stage"] = s.vpp_stage;
    one["name"] = s.name;
    one["micro_step"] = s.micro_step;
    one["columns"] = columns;
    all.append(one);
  }
  nb::dict out;
  out["series"] = all;
  out["cut_off"] = file.cut_off();
  out["last_step"] = file.last_step();
  return out;
}

}  // namespace

void BindMonitor(nb::module_& m) {
  nb::class_<MonitorJournal>(m, "MonitorJournal", "The series of one process: csv files, monitor.series, event files.")
      .def(nb::init<const std::string&, double, int, int64_t, bool, bool,
                    const std::vector<std::tuple<std::string, std::optional<double>>>&>(),
           nb::arg("directory"), nb::arg("eps"), nb::arg("digits"), nb::arg("steps_per_file"), nb::arg("csv"),
           nb::arg("events"), nb::arg("rules"), "ValueError: the directory cannot be written.")
      .def("add_table", &MonitorJournal::AddTable, nb::arg("name"), nb::arg("columns"), nb::arg("micro_steps"),
           nb::arg("declared"), "The number of a table; its rows are in the order they are declared, or arrive.")
      .def("add_series", &MonitorJournal::AddSeries, nb::arg("table"), nb::arg("vpp_stage"), nb::arg("name"),
           nb::arg("micro_step"), nb::arg("group"), nb::arg("tag"), "The number of a series; micro_step -1: none.")
      .def("take", &MonitorJournal::Take, nb::arg("series"), nb::arg("tensors"), nb::arg("threads"),
           "The statistics of tensors; returns the positions of those that cannot be read here.")
      .def("put_summary", &MonitorJournal::PutSummary, nb::arg("series"), nb::arg("numbers"), nb::arg("shape"),
           nb::arg("dtype"), "(count, min, max, mean, norm, NaN, near zero) of a tensor elsewhere.")
      .def("put", &MonitorJournal::Put, nb::arg("series"), nb::arg("values"), "Values of the columns; None: none.")
      .def(
          "set_shape",
          [](MonitorJournal& j, uint32_t series, const std::string& shape) { j.journal().SetShape(series, shape); },
          nb::arg("series"), nb::arg("shape"), "The shape that is written instead of the one seen.")
      .def(
          "drop", [](MonitorJournal& j) { j.journal().Drop(); }, "Forgets the values of this step.")
      .def("write", &MonitorJournal::Write, nb::arg("step"),
           "Writes the step: rows, alarms, and an error or empty text.")
      .def("rows", &MonitorJournal::Rows, nb::arg("table"),
           "(vpp_stage, name, micro_step, values) of the open step, or of the last.");
  nb::class_<MonitorEvents>(m, "MonitorEvents", "An event file of TensorBoard.")
      .def(nb::init<const std::string&>(), nb::arg("directory"), "ValueError: it cannot be written.")
      .def("add_scalar", &MonitorEvents::AddScalar, nb::arg("tag"), nb::arg("step"), nb::arg("value"))
      .def("flush", &MonitorEvents::Flush, "ValueError: it cannot be written.");
  m.def("read_series", &ReadSeries, nb::arg("path"), "All of a file monitor.series; ValueError: it is none.");
}

}  // namespace msprobe
