#include "judge/live_judge.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/monitor/monitor.h"
#include "bindings/python/raise.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

// The series of one rank, judged while they are written.
class SeriesJudge {
 public:
  SeriesJudge(const std::string& path, size_t rank, double false_alarms) {
    JudgeOptions options;
    options.false_alarms = false_alarms;
    auto opened = LiveJudge::Open(path, rank, options);
    Raise(opened.status());
    judge_ = std::move(*opened);
  }

  std::vector<std::string> Advance() {
    const nb::gil_scoped_release release;
    auto told = judge_->Advance();
    if (!told.ok()) {
      const nb::gil_scoped_acquire acquire;
      Raise(told.status());
    }
    return std::move(*told);
  }

 private:
  std::unique_ptr<LiveJudge> judge_;
};

}  // namespace

void BindSeriesJudge(nb::module_& m) {
  nb::class_<SeriesJudge>(m, "SeriesJudge", "Judges the series of one rank while they are written.")
      .def(nb::init<const std::string&, size_t, double>(), nb::arg("path"), nb::arg("rank"), nb::arg("false_alarms"),
           "ValueError: the file cannot be read.")
      .def("advance", &SeriesJudge::Advance, "Events that began in the steps written since, each a JSON object.");
}

}  // namespace msprobe
