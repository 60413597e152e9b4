#include "bindings/tasks.h"

#include <nanobind/stl/string.h>

#include "bindings/python/kept.h"
#include "bindings/python/runtime.h"
#include "dump/reader.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

TriggerKind KindOf(const std::string& name) {
  if (name == "overflow") return TriggerKind::kOverflow;
  if (name == "difference") return TriggerKind::kDifference;
  return name == "exception" ? TriggerKind::kException : TriggerKind::kNone;
}

void ConfigureTrigger(const std::string& kind, int64_t limit, const std::string& bench_path, size_t last_ops) {
  Runtime& r = rt();
  r.trigger.Configure({KindOf(kind), limit, bench_path, last_ops});
  SeeWhatDecides();
  auto lock = r.recorder->lock();
  r.recorder->construct().set_on_demand(r.trigger.active());
}

std::string CheckGolden(const std::string& path) {
  const auto found = ResolveDumpPath(path);
  return found.ok() ? std::string() : found.status().message();
}

std::string BeginStep(int step, int rank) {
  nb::gil_scoped_release release;
  return rt().trigger.BeginStep(step, rank).message();
}

nb::dict State() {
  const Trigger& trigger = rt().trigger;
  nb::dict out;
  out["kept"] = trigger.kept();
  out["exhausted"] = trigger.exhausted();
  out["not_in_bench"] = trigger.not_in_golden();
  return out;
}

}  // namespace

void BindTasks(nb::module_& m) {
  m.def("configure_trigger", &ConfigureTrigger, nb::arg("kind"), nb::arg("limit") = -1, nb::arg("bench_path") = "",
        nb::arg("last_ops") = 0, "After configure(): which ops are kept is decided when they have run.");
  m.def("check_bench", &CheckGolden, nb::arg("path"), "Empty text, or why this is not a dump.");
  m.def("begin_trigger_step", &BeginStep, nb::arg("step"), nb::arg("rank"), "Empty text, or why nothing will be kept.");
  m.def("trigger_state", &State, "How many ops were kept, whether that is all, and how many the earlier dump lacks.");
  m.def(
      "exhausted", [] { return rt().trigger.exhausted(); }, "Whether as many ops were kept as were asked for.");
  m.def("keep_last_ops", &KeepLastOps, "Task exception_dump: the ops before now are written, for the script is dying.");
}

}  // namespace msprobe
