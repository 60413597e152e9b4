// msprobe._core: what Python sees of the recorder. Converts and forwards; decides nothing.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <tuple>

#include "bindings/backward/node_hook.h"
#include "bindings/bind_beside.h"
#include "bindings/mindspore/cells.h"
#include "bindings/mindspore/mindspore_framework.h"
#include "bindings/mindspore/primitives.h"
#include "bindings/mindspore/tensors.h"
#include "bindings/monitor/monitor.h"
#include "bindings/monitor/torch/bind_taps.h"
#include "bindings/monitor/torch/parameter_reader.h"
#include "bindings/monitor/torch/step_visits.h"
#include "bindings/python/api_call.h"
#include "bindings/python/api_site.h"
#include "bindings/python/deferred.h"
#include "bindings/python/framework.h"
#include "bindings/python/hook_object.h"
#include "bindings/python/host_tensor.h"
#include "bindings/python/raise.h"
#include "bindings/python/runtime.h"
#include "bindings/python/step.h"
#include "bindings/python/tensor_record.h"
#include "bindings/python/values.h"
#include "bindings/python/works.h"
#include "bindings/tasks.h"
#include "bindings/torch/gradient_paths.h"
#include "bindings/torch/leaf_memo.h"
#include "bindings/torch/module_call.h"
#include "bindings/torch/module_params.h"
#include "bindings/torch/modules.h"
#include "bindings/torch/regions.h"
#include "bindings/torch/tensors.h"
#include "bindings/torch/torch_framework.h"
#include "bindings/torch/unwritten.h"
#include "bindings/torch/work_hooks.h"
#include "capture/format.h"
#include "json/writer.h"
#include "ops/collective.h"
#include "ops/op_traits.h"
#include "tensor/kernels/crc32.h"
#include "tensor/kernels/finfo.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

std::optional<std::tuple<std::string, int, double, double, double, double>> DTypeFigures(const std::string& dtype) {
  static constexpr std::array kKinds{"float", "integer", "bool", "complex"};
  const FInfo& info = InfoOf(ParseDType(dtype));
  if (info.kind == NumberKind::kNone) return std::nullopt;
  return std::tuple(kKinds[static_cast<size_t>(info.kind)], info.bits(), info.eps(), info.smallest_normal(),
                    info.largest, info.lowest);
}

// The conversion to std::string may not throw, so it would end the process where there is no memory.
std::string Utf8(const nb::str& text) {
  Py_ssize_t size = 0;
  const char* utf8 = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (utf8 == nullptr) throw nb::python_error();
  return {utf8, static_cast<size_t>(size)};
}

// Of a step that ended badly; short where there is no memory for more.
std::string TextOf(const Status& status) {
  try {
    return status.message();
  } catch (const std::bad_alloc&) {
    return "out of memory";
  }
}

void Init(nb::str name, nb::handle module, nb::object describe, nb::object describe_tensor,
          const std::string& own_directory) {
  InitRuntime();
  const bool torch = Utf8(name) == "torch";
  if (!InitApiTypes() || !(torch ? InitTorch(module.ptr()) : InitMindSpore(module.ptr()))) throw nb::python_error();
  Interpreter& i = interpreter();
  i.user_dict =
      reinterpret_cast<PyTypeObject*>(nb::getattr(nb::module_::import_("collections"), "UserDict").release().ptr());
  i.get_line = nb::getattr(nb::module_::import_("linecache"), "getline").release().ptr();
  i.describe = describe.release().ptr();
  i.describe_tensor = describe_tensor.release().ptr();
  i.own_directory = own_directory;
}

void Configure(const std::string& level, bool structure, const std::string& summary, bool extra_info,
               std::vector<std::string> data_mode, std::vector<std::string> scope, std::vector<std::string> list,
               const std::string& risk_level) {
  Runtime& r = rt();
  CaptureOptions o;
  o.apis = level == "L1" || level == "mix" || level == "L2";  // L2: operators of MindSpore
  o.modules = level == "L0" || level == "mix";
  o.structure = structure;
  o.checksums = summary == "md5";
  o.xor_digests = summary == "xor";
  o.extra_info = extra_info;
  auto has = [&](const char* mode) { return std::find(data_mode.begin(), data_mode.end(), mode) != data_mode.end(); };
  const bool any_direction = has("forward") || has("backward"), any_side = has("input") || has("output");
  const bool all = has("all");
  o.forward = all || !any_direction || has("forward");
  o.backward = all || !any_direction || has("backward");
  o.input = all || !any_side || has("input");
  o.output = all || !any_side || has("output");
  Raise(r.filter.Configure({level, std::move(scope), std::move(list), risk_level}));
  r.options = o;
}

void ConfigureSaving(const std::string& when, std::vector<std::string> tensor_list) {
  SavePolicy policy;
  policy.all = when == "now" ? SaveMode::kNow : when == "deferred" ? SaveMode::kDeferred : SaveMode::kNone;
  policy.tensor_list = std::move(tensor_list);
  rt().recorder->set_save_policy(std::move(policy));
}

using SliceNumbers = std::tuple<int, std::optional<int64_t>, int64_t, std::optional<int64_t>>;
void ConfigureSlices(const std::vector<SliceNumbers>& rules) {
  rt().slices.clear();
  for (const auto& [dim, size, begin, end] : rules) rt().slices.push_back({dim, size, begin, end});
}

std::string AddApiFrom(nb::handle owner, nb::str attr, nb::str prefix_text, nb::str name, nb::str risk_text,
                       bool in_place, nb::dict details) {
  ApiSpec spec;
  const std::string prefix = Utf8(prefix_text), risk = Utf8(risk_text);
  const std::string api = Utf8(name);
  spec.base = prefix + "." + api;
  spec.risk = risk == "CORE" ? Risk::kCore : risk == "LOW" ? Risk::kLow : Risk::kFocus;
  spec.in_place = in_place;
  // MindSpore's comm_func returns its results, mint.distributed fills an argument or changes it in place.
  const bool returns = details.contains("returns") && nb::cast<bool>(details["returns"]);
  spec.distributed = prefix == "Distributed" && !returns;
  spec.fills = prefix == "MintDistributed";
  if (const Collective* call = spec.distributed || spec.fills ? FindCollective(api) : nullptr; call && call->Fills()) {
    spec.ignored_args = {call->position};
    spec.ignored_keyword = call->keyword;
  }
  if (spec.distributed || prefix == "NPU") {
    const std::span<const int> positions = ResultsWithoutValue(api);
    spec.ignored_outputs.assign(positions.begin(), positions.end());
  }
  if (details.contains("dropout")) spec.dropout = nb::cast<bool>(details["dropout"]);
  if (details.contains("outputs_are_arguments")) spec.distributed = nb::cast<bool>(details["outputs_are_arguments"]);
  if (details.contains("skip_self")) spec.skip_self = nb::cast<bool>(details["skip_self"]);
  if (details.contains("primitive")) {
    spec.name_of = NameOfPrimitive;
    spec.attributes_of = AttributesOfPrimitive;
    spec.skip_self = true;
  }
  if (details.contains("resizes")) spec.before = BeforeResize, spec.watch = AfterResize;
  if (details.contains("writes")) spec.writes = nb::cast<bool>(details["writes"]);
  if (details.contains("stand_in")) spec.stand_in = Ref::Borrow(nb::handle(details["stand_in"]).ptr());
  if (details.contains("instead")) {
    spec.instead = Ref::Borrow(nb::handle(details["instead"]).ptr());
    spec.role = ApiRole::kInstead;
  }
  if (details.contains("skip_owner")) spec.skip_owner = true;
  if (details.contains("resolve")) spec.resolve = Ref::Borrow(nb::handle(details["resolve"]).ptr());
  if (details.contains("role")) {
    const std::string role = Utf8(nb::cast<nb::str>(details["role"]));
    spec.role = role == "mute"    ? ApiRole::kMute
                : role == "leave" ? ApiRole::kLeave
                : role == "aside" ? ApiRole::kAside
                : role == "count" ? ApiRole::kCount
                : role == "write" ? ApiRole::kWrite
                                  : ApiRole::kWatch;
    (void)SetWorkRole(role, &spec);
    if (role == "allocate") spec.watch = AfterAllocation;
    if (role == "set_eval_frame") {
      spec.before = BeforeSetEvalFrame, spec.watch = AfterSetEvalFrame, spec.stays = RegionsAreWatched;
    }
    if (role == "new_graph") spec.watch = [](const CallArgs&, PyObject*) { ReadLaterAgain(); };
    if (role == "begin_pass") spec.before = BeginPass, spec.watch = [](const CallArgs&, PyObject*) {};
    if (role == "register_hook") spec.watch = AfterRegisterHook;
    if (role == "node_hook") spec.shortcut = PutIntoDict, spec.watch = [](const CallArgs&, PyObject*) {};
    if (role == "backward") {
      spec.before = [](const CallArgs&) { BeginBackward(); };
      spec.watch = [](const CallArgs&, PyObject*) { ReadAfterBackward(); };
    }
    if (role == "compile") {
      spec.before = [](const CallArgs&) { HideFromGraphCompiler(true); };
      spec.watch = [](const CallArgs&, PyObject*) { HideFromGraphCompiler(false); };
    }
  }
  if (details.contains("phase")) {
    spec.role = ApiRole::kPhase;
    spec.phase = InternName(Utf8(nb::cast<nb::str>(details["phase"])));
  }
  std::string why;
  Ref key = Ref::Borrow(attr.ptr());
  PyObject* interned = key.release();
  PyUnicode_InternInPlace(&interned);
  key = Ref(interned);
  return AddApi(owner.ptr(), key.get(), spec, &why) ? std::string() : why;
}

void Start(nb::str dir, nb::str task, nb::str level, uint64_t ranks) {
  Raise(StartStep(Utf8(dir), Utf8(task), Utf8(level), ranks));
}
std::string Stop() { return TextOf(StopStep()); }
std::string End() { return TextOf(EndStep()); }
void Pause() { rt().running = false; }
void Resume() { rt().running = rt().step_open && !rt().trigger.exhausted(); }

// value(record) into a record of this name; without memory there is none. True: it was recorded.
template <typename Value>
bool SaveRecord(const nb::str& name, Value value) {
  Record* record = nullptr;
  const bool whole = Shielded([&] {
    InTool guard;
    record = rt().recorder->Acquire({InternName(Utf8(name)), 0, NameForm::kPlain});
    record->bare = true;
    value(record);
  });
  if (record == nullptr) return false;
  if (!whole) return rt().recorder->Discard(record), false;
  return Shielded([&] { rt().recorder->Commit(record); });
}

void Save(nb::str name, nb::handle value) {
  if (SaveRecord(name, [&](Record* record) { RecordValue(record, value.ptr()); })) ++rt().recorded;
}

void SaveJson(nb::str name, nb::str json) {
  (void)SaveRecord(name, [&](Record* record) { record->Json(Utf8(json)); });
}

std::string ValueJson(nb::str name, nb::handle value) {
  std::string json;
  const bool whole = Shielded([&] {
    InTool guard;
    Record record;
    record.name = {InternName(Utf8(name)), 0, NameForm::kPlain};
    record.bare = true;
    record.save = rt().recorder->save_policy().For(record.name);
    RecordValue(&record, value.ptr());
    ResolveNow(&record);
    JsonWriter stream(&json, kJsonIndented);
    FormatValue(record, framework().names(), &stream);
  });
  return whole ? json : "null";
}

nb::object RunUnseen(nb::callable function) {
  InTool guard;
  return function();
}

bool SaveTensor(nb::str file, nb::handle tensor) {
  return IsPlainTensor(tensor.ptr()) && SavePlainTensor(tensor.ptr(), Utf8(file));
}

void StopWriting(nb::str part, nb::str why) {
  using Part = OutputGate::Part;
  const std::string what = Utf8(part), reason = Utf8(why);
  if (what != "tensors" && what != "ops") throw nb::value_error("what must be 'tensors' or 'ops'");
  rt().recorder->gate().Stop(what == "ops" ? Part::kOps : Part::kTensors, OutputGate::Until::kEndOfRun, reason);
  if (rt().files->is_open()) rt().files->Stop(InternalError(reason));
}

uint64_t BytesWritten() {
  const Runtime& r = rt();
  return r.recorder->gate().bytes_of_run() + (r.files->is_open() ? r.files->counts().bytes : 0);
}

nb::dict TakeSummary() {
  Runtime& r = rt();
  Shielded(CountNoMemory);  // or told with the next step
  nb::dict out, skipped, examples;
  for (const auto& [kind, count] : r.skipped) skipped[kind.c_str()] = count;
  for (const auto& [kind, text] : r.skip_examples) examples[kind.c_str()] = text;
  const TensorFileCounts files = r.files->TakeCounts();
  nb::dict tensors;
  tensors["saved"] = files.saved;
  tensors["linked"] = files.linked;
  tensors["bytes"] = files.bytes;
  tensors["dropped"] = files.dropped;
  out["tensors"] = tensors;
  out["recorded"] = r.recorded;
  out["skipped"] = skipped;
  out["examples"] = examples;
  const StepSummary& step = r.recorder->summary();
  out["written"] = step.ops;
  out["not_written"] = step.ops_not_written;
  out["tensors_not_written"] = step.tensors_not_written;
  out["bytes"] = step.bytes + step.tensor_bytes;
  out["ops_stopped"] = step.ops_stopped;
  out["tensors_stopped"] = step.tensors_stopped;
  r.recorded = 0;
  r.skipped.clear();
  r.skip_examples.clear();
  return out;
}

void AddParameterOwnerFrom(nb::handle module, nb::str base) {
  if (!AddParameterOwner(module.ptr(), Utf8(base).c_str())) throw nb::python_error();
}
void AddModuleFrom(nb::handle module, nb::str base) {
  if (!AddModule(module.ptr(), Utf8(base).c_str())) throw nb::python_error();
}

void AddCellFrom(nb::handle cell, nb::str base) {
  if (!AddCell(cell.ptr(), Utf8(base).c_str())) throw nb::python_error();
}

void LimitWriting(uint64_t tensors, uint64_t ops, nb::str why) {
  const std::string reason = Utf8(why);
  rt().files->Limit(tensors, reason);
  rt().recorder->Limit(ops, reason);
}

void SetPhaseFrom(nb::str name) {
  Shielded([&] {
    const std::string phase = Utf8(name);
    SetPhase(phase.empty() ? nullptr : InternName(phase));
  });
}

void SetDeviceSamplesFrom(nb::object take, nb::object is_same) { SetDeviceSamples(take.ptr(), is_same.ptr()); }

nb::object StatisticsFrom(nb::handle tensor) {
  PyObject* result = StatisticsOf(tensor.ptr());
  if (result == nullptr) throw nb::python_error();
  return nb::steal(result);
}

uint32_t Crc32At(uintptr_t address, size_t bytes, uint32_t seed) {
  const nb::gil_scoped_release release;
  return Crc32(reinterpret_cast<const void*>(address), bytes, seed);
}

// What is recorded, and of which functions and modules.
void BindSettings(nb::module_& m) {
  m.def("init", &Init, nb::arg("name"), nb::arg("module"), nb::arg("describe"), nb::arg("describe_tensor"),
        nb::arg("own_directory"),
        "Before all else: the framework (\"torch\" or \"mindspore\"), odd_values.py's functions, and the directory "
        "whose frames stacks leave out.");
  m.def("configure", &Configure, nb::arg("level"), nb::arg("structure"), nb::arg("summary"), nb::arg("extra_info"),
        nb::arg("data_mode"), nb::arg("scope"), nb::arg("list"), nb::arg("risk_level"),
        "What is recorded from the next start() on; ValueError: the scope or the list cannot be used.");
  m.def(
      "configure_saving", &ConfigureSaving, nb::arg("when"), nb::arg("tensor_list"),
      "Which tensors are saved, \"no\", \"now\" or \"deferred\", and those of ops whose name has a part of the list.");
  m.def("configure_slices", &ConfigureSlices, nb::arg("rules"),
        "The part of each tensor that is recorded: (dim, size or None, begin, end or None) for each rule.");
  m.def("add_api", &AddApiFrom, nb::arg("owner"), nb::arg("attr"), nb::arg("prefix"), nb::arg("name"), nb::arg("risk"),
        nb::arg("in_place") = true, nb::arg("details") = nb::dict(),
        "Hooks owner.attr as {prefix}.{name}; returns empty text, or why it cannot be hooked.");
  m.def(
      "remove_api", [](nb::handle owner, nb::str attr) { return RemoveApi(owner.ptr(), attr.ptr()); }, nb::arg("owner"),
      nb::arg("attr"), "Ends the last add_api() of this attribute; False: there is none.");
  m.def("add_parameter_owner", &AddParameterOwnerFrom, nb::arg("module"), nb::arg("base"),
        "Records the gradients of a module's own parameters, and none of its calls.");
  m.def(
      "watch_works", [](nb::handle type) { WatchWorks(reinterpret_cast<PyTypeObject*>(type.ptr())); }, nb::arg("type"),
      "Follows who waits for works of this class and, from then on, of those below it.");
  m.def("add_module", &AddModuleFrom, nb::arg("module"), nb::arg("base"),
        "Hooks a module whose entries are named base, as Module.fc.Linear.");
  m.def("add_cell", &AddCellFrom, nb::arg("cell"), nb::arg("base"), "The same for a Cell, as Cell.fc.Dense.");
  m.def(
      "name_primitive",
      [](nb::handle primitive, nb::str base, nb::handle attributes) {
        NamePrimitive(primitive.ptr(), Utf8(base).c_str(), attributes.is_none() ? nullptr : attributes.ptr());
      },
      nb::arg("primitive"), nb::arg("base"), nb::arg("attributes").none(),
      "Calls of this Primitive are entries of this name, as Primitive.conv.Conv2D, with these attributes if it has "
      "any.");
  m.def("api_count", &ApiCount, "How many functions are hooked.");
  m.def("install_apis", &InstallApis, "Puts the hooks of functions in place; start() does it.");
  m.def("remove_apis", &RemoveApis, "Takes the hooks of functions away; stop() does it.");
  m.def("install_modules", &InstallModuleHooks, "Puts the hooks of modules in place; start() does it.");
  m.def("remove_modules", &RemoveModuleHooks, "Takes the hooks of modules away; stop() does it.");
  m.def(
      "set_used_later", [](nb::handle function) { SetUsedLater(function.ptr()); }, nb::arg("function"),
      "The function of later_use.py: tensor -> may code that runs use it after the call of a module that is made now?");
}

void BindSteps(nb::module_& m) {
  m.def("start", &Start, nb::arg("dir"), nb::arg("task"), nb::arg("level"), nb::arg("ranks") = 0,
        "Records into this directory from here on, as one of so many ranks; ValueError: it cannot be written.");
  m.def(
      "set_schedule", [](nb::str json) { rt().recorder->SetSchedule(Utf8(json)); }, nb::arg("json"),
      "JSON of the rows of the batches of the open step, which its dump.json keeps.");
  m.def("pause", &Pause, "Hooks stay and record nothing.");
  m.def("resume", &Resume, "Hooks record again, if a step is open.");
  m.def(
      "is_running", [] { return rt().running; }, "Whether something is recorded now.");
  m.def("stop", &Stop, "Records no more; the files are complete. Text of an error, or empty.");
  m.def("end_step", &End, "Closes the files of the step. Text of an error, or empty.");
  m.def("set_phase", &SetPhaseFrom, nb::arg("name"),
        "What runs from here on has this parent in construct.json; empty text: its own again.");
  m.def("take_summary", &TakeSummary, "Counts of the step that has ended, which begin anew.");
  m.def(
      "note_skip", [](nb::str kind, nb::str text) { Shielded([&] { NoteSkip(Utf8(kind), Utf8(text)); }); },
      nb::arg("kind"), nb::arg("text"), "Counts something that was not recorded; the first text of a kind is kept.");
  m.def("run_unseen", &RunUnseen, nb::arg("function"), "Calls a function whose calls are not recorded.");
  m.def("save", &Save, nb::arg("name"), nb::arg("value").none(), "Records one value, at level debug.");
  m.def("save_json", &SaveJson, nb::arg("name"), nb::arg("json"), "Records one value that is JSON text already.");
  m.def("value_json", &ValueJson, nb::arg("name"), nb::arg("value").none(), "What save() would write, as JSON text.");
}

// Files, and what they may hold.
void BindFiles(nb::module_& m) {
  m.def("save_tensor", &SaveTensor, nb::arg("file"), nb::arg("tensor"),
        "Saves a plain tensor; False: it is none, or it will not be there.");
  m.def(
      "tensor_dir", [] { return rt().files->working() ? rt().files->dir() : std::string(); },
      "Where tensors are saved; empty: save nothing.");
  m.def(
      "count_tensor_file", [](uint64_t bytes, bool saved) { rt().files->Count(bytes, saved); }, nb::arg("bytes"),
      nb::arg("saved"), "Counts a tensor file that Python wrote, or could not write.");
  m.def(
      "stop_saving", [](nb::str why) { rt().files->Stop(InternalError(Utf8(why))); }, nb::arg("why"),
      "No more tensors are saved in this step.");
  m.def("limit_writing", &LimitWriting, nb::arg("tensors"), nb::arg("ops"), nb::arg("reason"),
        "Bytes of the step that has begun: so many of tensor files, so many of the rest.");
  m.def(
      "was_limited", [] { return rt().files->limited() || rt().recorder->limited(); },
      "Whether limit_writing() has kept something from being written.");
  m.def("bytes_written", &BytesWritten, "By this process, all steps.");
  m.def("stop_writing", &StopWriting, nb::arg("what"), nb::arg("reason"),
        "No more 'tensors', or nothing more ('ops'), until the process ends; the reason is for the summary.");
}

// Values that are computed elsewhere, and numbers of memory.
void BindValues(nb::module_& m) {
  m.def("set_device_samples", &SetDeviceSamplesFrom, nb::arg("take"), nb::arg("is_same"),
        "Functions of unwritten.py that look at memory of devices.");
  m.def(
      "read_tensors", [] { ReadBeforeWrite(); },
      "Reads what was recorded of tensors of MindSpore and waits to be read.");
  m.def("in_backward", &InBackward, "Whether MindSpore runs a backward pass.");
  m.def("leaf_memo_hits", &LeafMemoHits, "Values that were not read a second time.");
  m.def("statistics_of", &StatisticsFrom, nb::arg("tensor"),
        "(Max, Min, Mean, Norm, CRC-32 text) of a plain tensor in host memory; TypeError: it is none.");
  m.def("crc32", &Crc32At, nb::arg("address"), nb::arg("bytes"), nb::arg("seed") = 0,
        "CRC-32 of memory that the caller keeps.");
  m.def("dtype_figures", &DTypeFigures, nb::arg("dtype"),
        "(kind, bits, eps, smallest normal, largest, lowest) of a dtype's name; of a complex one, its parts'. None: "
        "not known.");
  m.def(
      "crc32_of", [](nb::bytes data) { return Crc32(data.c_str(), data.size()); }, nb::arg("data"), "CRC-32 of bytes.");
}

}  // namespace
}  // namespace msprobe

NB_MODULE(_core, m) {
  using namespace msprobe;
  m.doc() = "The recorder behind PrecisionDebugger.";
  m.attr("__version__") = MSPROBE_VERSION;
  if (!InitHookType()) throw nb::python_error();
  m.attr("ModuleHook") = nb::borrow(HookType());  // models that were saved with such hooks name it
  BindSettings(m);
  BindSteps(m);
  BindFiles(m);
  BindValues(m);
  BindTasks(m);
  nb::set_leak_warnings(false);  // a monitor lives until the interpreter is gone
  BindMonitor(m);
  BindSeriesJudge(m);
  BindModuleTaps(m);
  BindParameterReader(m);
  BindStepVisits(m);
  BindOptimizerStep(m);
  BindBeside(m);
}
