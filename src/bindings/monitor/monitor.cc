#include "bindings/monitor/monitor.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/monitor/grad_hook.h"
#include "bindings/monitor/monitor_journal.h"
#include "bindings/python/raise.h"
#include "monitor/event_file.h"
#include "monitor/series_reader.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

uint32_t AddTable(MonitorJournal& j, const std::string& name, std::vector<std::string> columns, bool micro_steps,
                  bool declared) {
  return j.journal().AddTable(name, std::move(columns), micro_steps,
                              declared ? Journal::Order::kDeclared : Journal::Order::kArrival);
}

uint32_t AddSeries(MonitorJournal& j, uint32_t table, int64_t vpp_stage, const std::string& name, int64_t micro_step,
                   uint32_t group, const std::string& tag) {
  return j.journal().AddSeries({table, vpp_stage, name, micro_step}, group, tag);
}

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
      .def("add_table", &AddTable, nb::arg("name"), nb::arg("columns"), nb::arg("micro_steps"), nb::arg("declared"),
           "The number of a table; its rows are in the order they are declared, or arrive.")
      .def("add_series", &AddSeries, nb::arg("table"), nb::arg("vpp_stage"), nb::arg("name"), nb::arg("micro_step"),
           nb::arg("group"), nb::arg("tag"), "The number of a series; micro_step -1: none.")
      .def("take", &MonitorJournal::Take, nb::arg("series"), nb::arg("tensors"), nb::arg("threads"),
           nb::arg("often") = false,
           "The statistics of tensors, often: such that are met several times; returns the positions of those that "
           "cannot be read here.")
      .def("put_summary", &MonitorJournal::PutSummary, nb::arg("series"), nb::arg("numbers"), nb::arg("shape"),
           nb::arg("dtype"), "(count, min, max, mean, norm, NaN, near zero) of a tensor elsewhere.")
      .def("put", &MonitorJournal::Put, nb::arg("series"), nb::arg("values"), "Values of the columns; None: none.")
      .def(
          "set_shape",
          [](MonitorJournal& j, uint32_t series, const std::string& shape) { j.journal().SetShape(series, shape); },
          nb::arg("series"), nb::arg("shape"), "The shape that is written instead of the one seen.")
      .def(
          "drop", [](MonitorJournal& j) { j.Drop(); }, "Forgets the values of this step.")
      .def("write", &MonitorJournal::Write, nb::arg("step"),
           "Writes the step: rows, alarms, and an error or empty text.")
      .def(
          "heard", [](MonitorJournal& j, bool ever) { return j.Heard(ever); }, nb::arg("ever"),
          "The series that the last step has values of, or that had any so far.")
      .def_rw("armed", &MonitorJournal::armed, "Whether hooks of gradients take what they see.")
      .def_rw("step", &MonitorJournal::step, "Another number for each step: hooks of gradients count passes in it.")
      .def("rows", &MonitorJournal::Rows, nb::arg("table"),
           "(vpp_stage, name, micro_step, values) of the open step, or of the last.");
  BindGradHook(m);
  nb::class_<MonitorEvents>(m, "MonitorEvents", "An event file of TensorBoard.")
      .def(nb::init<const std::string&>(), nb::arg("directory"), "ValueError: it cannot be written.")
      .def("add_scalar", &MonitorEvents::AddScalar, nb::arg("tag"), nb::arg("step"), nb::arg("value"))
      .def("flush", &MonitorEvents::Flush, "ValueError: it cannot be written.");
  m.def("read_series", &ReadSeries, nb::arg("path"), "All of a file monitor.series; ValueError: it is none.");
}

}  // namespace msprobe
