// A step of an optimizer, computed again in float64 from tensors in memory.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/monitor/monitor.h"
#include "bindings/python/framework.h"
#include "bindings/python/host_tensor.h"
#include "bindings/python/raise.h"
#include "json/writer.h"
#include "optimizer/replay_optimizer.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

// `description`: an optimizer.json as OptimizerRecord writes it; `tensors`: (name, whether after the step, tensor).
std::string CheckOptimizerStep(const std::string& description, nb::list tensors) {
  JsonDoc doc;
  Raise(ParseJson(description, "the description of a step", &doc));
  OptimizerRecord record;
  record.path = "this step";
  record.steps.emplace_back();
  StepBuilder builder(&record.steps.back());
  Raise(builder.Describe(doc, "the description of a step", ""));
  for (const nb::handle item : tensors) {
    const nb::tuple entry = nb::cast<nb::tuple>(item);
    TensorLook look;
    if (!framework().LookAt(nb::handle(entry[2]).ptr(), &look)) throw nb::value_error("a tensor is not in host memory");
    FileTensor tensor;
    tensor.name = nb::cast<std::string>(entry[0]);
    tensor.dtype = look.dtype;
    tensor.data = look.data;
    tensor.shape.assign(look.shape, look.shape + look.ndim);
    tensor.strides.assign(look.strides, look.strides + look.ndim);
    builder.Take(tensor, nb::cast<bool>(entry[1]));
  }
  builder.Finish();
  if (record.steps.back().weights.empty()) return "[]";
  StatusOr<OptimizerReplay> replay = [&] {
    // The list holds the tensors meanwhile.
    const nb::gil_scoped_release release;
    return ReplayOptimizer(record);
  }();
  Raise(replay.status());
  JsonWriter json;
  json.Array(replay->findings, [&](const TermFinding& finding) { json.Value(finding.text); });
  return json.Take();
}

bool IsKnownOptimizer(const std::string& name) { return ParseOptimizerKind(name) != OptimizerKind::kUnknown; }

}  // namespace

void BindOptimizerStep(nb::module_& m) {
  m.def("check_optimizer_step", &CheckOptimizerStep, nb::arg("description"), nb::arg("tensors"),
        "What is not as the hyperparameters say, a JSON list of texts; ValueError: the description is none.");
  m.def("is_known_optimizer", &IsKnownOptimizer, nb::arg("name"), "Whether the rule of an optimizer is known.");
}

}  // namespace msprobe
