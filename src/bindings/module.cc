// msprobe._core: what Python sees of the recorder. Converts and forwards; decides nothing.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <tuple>

#include "base/file.h"
#include "bindings/api_call.h"
#include "bindings/backward.h"
#include "bindings/deferred.h"
#include "bindings/frames.h"
#include "bindings/kept.h"
#include "bindings/leaf_memo.h"
#include "bindings/modules.h"
#include "bindings/regions.h"
#include "bindings/runtime.h"
#include "bindings/tasks.h"
#include "bindings/values.h"
#include "bindings/works.h"
#include "capture/format.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

// The conversion to std::string may not throw, so it would end the process where there is no memory.
std::string Utf8(const nb::str& text) {
  Py_ssize_t size = 0;
  const char* utf8 = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (utf8 == nullptr) throw nb::python_error();
  return {utf8, static_cast<size_t>(size)};
}

void Throw(const Status& status) {
  if (!status.ok()) throw nb::value_error(status.message().c_str());
}

PyObject* Attribute(nb::handle owner, const char* path) {
  nb::object o = nb::borrow(owner);
  std::string text = path;
  for (size_t at = 0; at != std::string::npos;) {
    const size_t dot = text.find('.', at);
    const std::string part = text.substr(at, dot == std::string::npos ? dot : dot - at);
    if (!nb::hasattr(o, part.c_str())) return nullptr;
    o = o.attr(part.c_str());
    at = dot == std::string::npos ? dot : dot + 1;
  }
  return o.release().ptr();
}

const DlpackExchangeApi* FindDlpack(nb::handle tensor_type) {
  for (const char* name : {"__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__"}) {
    PyObject* capsule = Attribute(tensor_type, name);
    if (capsule == nullptr) continue;
    auto* api = static_cast<const DlpackExchangeApi*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
    if (api == nullptr) PyErr_Clear();
    if (api != nullptr && api->header.version.major == 1) return api;  // the capsule stays alive
  }
  return nullptr;
}

// A forked child (DataLoader workers) has the hooks but neither the files nor the writing thread.
void AfterForkInChild() {
  rt().running = rt().step_open = false;
  rt().threads_in_tool = 0;
  try {
    auto recorder = std::make_unique<Recorder>();
    auto files = std::make_unique<TensorFiles>();
    rt().recorder = recorder.release();
    rt().files = files.release();
  } catch (const std::bad_alloc&) {  // nothing will be recorded here anyway
  }
}

void Init(nb::handle torch, nb::object describe, nb::object describe_tensor, const std::string& own_directory) {
  Runtime& r = rt();
  InitNames();
  if (r.recorder == nullptr) {
    r.recorder = new Recorder;
    r.files = new TensorFiles;
    pthread_atfork(nullptr, nullptr, AfterForkInChild);
  }
  if (!InitBackwardTypes() || !InitModuleTypes() || !InitApiTypes()) throw nb::python_error();
  r.tensor = reinterpret_cast<PyTypeObject*>(Attribute(torch, "Tensor"));
  r.parameter = reinterpret_cast<PyTypeObject*>(Attribute(torch, "nn.Parameter"));
  r.torch_size = reinterpret_cast<PyTypeObject*>(Attribute(torch, "Size"));
  r.torch_dtype = reinterpret_cast<PyTypeObject*>(Attribute(torch, "dtype"));
  r.torch_device = reinterpret_cast<PyTypeObject*>(Attribute(torch, "device"));
  r.user_dict = reinterpret_cast<PyTypeObject*>(Attribute(nb::module_::import_("collections"), "UserDict"));
  r.is_grad_enabled = Attribute(torch, "is_grad_enabled");
  r.tracing_state = Attribute(torch, "_C._get_tracing_state");
  r.mode_depth = Attribute(torch, "_C._len_torch_function_stack");
  r.disable_modes = Attribute(torch, "_C.DisableTorchFunction");
  if (r.disable_modes == nullptr) r.mode_depth = nullptr;
  r.work = reinterpret_cast<PyTypeObject*>(Attribute(torch, "_C._distributed_c10d.Work"));
  r.open_blocks = Attribute(torch, "distributed.distributed_c10d._world.pg_coalesce_state");
  r.next_sequence = Attribute(torch, "_C._autograd._get_sequence_nr");
  r.current_node = Attribute(torch, "_C._current_autograd_node");
  r.current_pass = Attribute(torch, "_C._current_graph_task_id");
  if (r.current_pass != nullptr)
    r.at_end_of_pass = Attribute(torch, "autograd.Variable._execution_engine.queue_callback");
  r.compiler = Attribute(torch, "compiler.__dict__");
  r.global_forward_hooks = Attribute(torch, "nn.modules.module._global_forward_hooks");
  if (PyObject* file = Attribute(torch, "nn.modules.module.__file__"); file != nullptr) {
    const std::string path = nb::cast<std::string>(nb::steal(file));
    r.module_directory = PyUnicode_FromString(path.substr(0, path.rfind('/') + 1).c_str());
  }
  r.dispatch_mode = Attribute(torch, "_C._get_dispatch_mode");
  r.functional_key = Attribute(torch, "_C._TorchDispatchModeKey.FUNCTIONAL");
  r.proxy_key = Attribute(torch, "_C._TorchDispatchModeKey.PROXY");
  if (r.dispatch_mode != nullptr && r.functional_key != nullptr && r.proxy_key != nullptr) {
    r.dispatch_depth = Attribute(torch, "_C._len_torch_dispatch_stack");
  }
  if (r.next_sequence == nullptr) {
    r.any_leaf = nb::object(torch.attr("empty")(0, nb::arg("requires_grad") = true)).release().ptr();
  }
  r.get_line = Attribute(nb::module_::import_("linecache"), "getline");
  if (r.tensor == nullptr || r.parameter == nullptr || r.is_grad_enabled == nullptr) {
    throw std::runtime_error("this release of PyTorch lacks torch.Tensor, nn.Parameter or is_grad_enabled");
  }
  r.dlpack = FindDlpack(reinterpret_cast<PyObject*>(r.tensor));
  r.describe = describe.release().ptr();
  r.describe_tensor = describe_tensor.release().ptr();
  r.own_directory = own_directory;
}

void Configure(const std::string& level, bool structure, const std::string& summary, bool extra_info,
               std::vector<std::string> data_mode, std::vector<std::string> scope, std::vector<std::string> list,
               const std::string& risk_level) {
  Runtime& r = rt();
  CaptureOptions o;
  o.apis = level == "L1" || level == "mix";
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
  Throw(r.filter.Configure({level, std::move(scope), std::move(list), risk_level}));
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
  spec.base = prefix + "." + Utf8(name);
  spec.risk = risk == "CORE" ? Risk::kCore : risk == "LOW" ? Risk::kLow : Risk::kFocus;
  spec.in_place = in_place;
  spec.distributed = prefix == "Distributed";
  if (details.contains("dropout")) spec.dropout = nb::cast<bool>(details["dropout"]);
  if (details.contains("ignored_args")) spec.ignored_args = nb::cast<std::vector<int>>(details["ignored_args"]);
  if (details.contains("ignored_outputs"))
    spec.ignored_outputs = nb::cast<std::vector<int>>(details["ignored_outputs"]);
  if (details.contains("ignored_keyword")) spec.ignored_keyword = nb::cast<std::string>(details["ignored_keyword"]);
  if (details.contains("outputs_are_arguments")) spec.distributed = nb::cast<bool>(details["outputs_are_arguments"]);
  if (details.contains("skip_self")) spec.skip_self = nb::cast<bool>(details["skip_self"]);
  if (details.contains("resolve")) spec.resolve = Ref::Borrow(nb::handle(details["resolve"]).ptr());
  if (details.contains("role")) {
    const std::string role = Utf8(nb::cast<nb::str>(details["role"]));
    spec.role = role == "mute" ? ApiRole::kMute : role == "leave" ? ApiRole::kLeave : ApiRole::kWatch;
    if (role == "wait") spec.watch = AfterWait;
    if (role == "set_eval_frame") spec.before = BeforeSetEvalFrame, spec.watch = AfterSetEvalFrame;
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

Status CloseStep();

Status OpenStep(const std::string& dir, const std::string& task, const std::string& level) {
  Runtime& r = rt();
  Status status;
  try {
    status = MakeOutputDir(dir);
    std::string tensor_dir;
    if (status.ok() && r.recorder->save_policy().saves()) {
      std::error_code error;
      tensor_dir = JoinPath(std::filesystem::absolute(dir, error).lexically_normal().string(), "dump_tensor_data");
      status = r.files->Open(tensor_dir);
    }
    if (status.ok())
      status = r.recorder->Open({dir, task, level, "pytorch", r.options.extra_info && level != "debug", tensor_dir});
  } catch (const std::bad_alloc&) {
    status = NoMemory();
  }
  return status;
}

void Start(nb::str dir, nb::str task, nb::str level) {
  Runtime& r = rt();
  {
    const std::string own_dir = Utf8(dir), own_task = Utf8(task), own_level = Utf8(level);
    Status status;
    {
      const GilReleased released;
      status = OpenStep(own_dir, own_task, own_level);
    }
    Throw(status);
  }
  if (OutputGate& gate = r.recorder->gate(); r.files->is_open() && !gate.open(OutputGate::Part::kTensors)) {
    r.files->Stop(InternalError(gate.step(OutputGate::Part::kTensors).reason));
  }
  Shielded(ForgetRegions);
  Shielded(InstallApis);  // at L0 those that are no ops: regions that are left alone
  if (r.options.modules) Shielded(InstallModuleHooks);
  r.step_open = true;
  r.running = !r.trigger.exhausted();
}

// No thread records any more, and what waits for its turn in the backward has had it.
void StopRecording() {
  Runtime& r = rt();
  t_flags.finishing = std::exchange(r.running, false);
  WaitForOtherThreads();
  Shielded([] { BackwardOrder::Get().Finish(); });
  t_flags.finishing = false;
}

// Tensors before the ops that name them: what is reported flushed is there with its files.
Status FlushStep() {
  Runtime& r = rt();
  try {
    (void)r.files->Finish();
    const Status ops = r.recorder->Flush();
    return ops.ok() ? r.files->TakeStatus() : ops;
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

Status CloseStep() {
  using Part = OutputGate::Part;
  Runtime& r = rt();
  OutputGate& gate = r.recorder->gate();
  try {
    const bool saved = r.files->is_open(), stopped = !gate.open(Part::kTensors);
    const Status tensors = r.files->Close();
    if (saved) {
      const TensorFileCounts counts = r.files->counts();
      gate.AddWritten(Part::kTensors, counts.bytes, counts.saved);
      gate.AddSkipped(Part::kTensors, counts.dropped);
      if (!tensors.ok()) gate.Stop(Part::kTensors, OutputGate::Until::kEndOfStep, tensors.message());
    }
    CountNoMemory();
    const Status ops = r.recorder->Close(r.skipped);
    const Status untold = r.files->TakeStatus();
    return ops.ok() && !stopped ? untold : ops;
  } catch (const std::bad_alloc&) {
    try {
      (void)r.recorder->Close({});  // nothing where it is closed already
    } catch (const std::bad_alloc&) {
    }
    return NoMemory();
  }
}

std::string Text(const Status& status) {
  try {
    return status.message();
  } catch (const std::bad_alloc&) {
    return "out of memory";  // short enough to need none
  }
}

std::string Stop() {
  Runtime& r = rt();
  StopRecording();
  Shielded(CollectDone);
  Shielded(ForgetRegions);
  Shielded(RemoveApis);
  Shielded(RemoveModuleHooks);
  if (!r.step_open) return {};
  Shielded(FinishParamGrads);
  Shielded(FetchDeferred);
  Status status;
  {
    const GilReleased released;
    status = FlushStep();
  }
  return Text(status);
}

std::string EndStep() {
  Runtime& r = rt();
  if (!r.step_open) return {};
  StopRecording();
  Shielded(GiveUpOpenWorks);
  r.step_open = false;
  if (!ApisInstalled()) Shielded(RemoveApis);  // those that waited for works
  Shielded(FinishParamGrads);
  Shielded(EndKeeping);
  ++r.generation;         // calls that are still running find their records stale ...
  WaitForOtherThreads();  // ... or have finished them
  Shielded(FetchDeferred);
  Status status;
  {
    const GilReleased released;
    status = CloseStep();
  }
  EndDeferred();
  r.filter.Reset();
  return Text(status);
}

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
    JsonStream stream(&json);
    FormatValue(record, &stream);
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

}  // namespace
}  // namespace msprobe

NB_MODULE(_core, m) {
  using namespace msprobe;
  m.doc() = "The recorder behind PrecisionDebugger.";
  m.attr("__version__") = MSPROBE_VERSION;
  if (!InitModuleTypes()) throw nb::python_error();
  m.attr("ModuleHook") = nb::borrow(ModuleHookType());  // a model saved while it is recorded names it
  m.def("init", &Init, nb::arg("torch"), nb::arg("describe"), nb::arg("describe_tensor"), nb::arg("own_directory"));
  m.def("configure", &Configure, nb::arg("level"), nb::arg("structure"), nb::arg("summary"), nb::arg("extra_info"),
        nb::arg("data_mode"), nb::arg("scope"), nb::arg("list"), nb::arg("risk_level"));
  m.def("add_api", &AddApiFrom, nb::arg("owner"), nb::arg("attr"), nb::arg("prefix"), nb::arg("name"), nb::arg("risk"),
        nb::arg("in_place") = true, nb::arg("details") = nb::dict(), "Empty text, or why it cannot be hooked.");
  m.def("add_module", [](nb::handle module, nb::str base) {
    if (!AddModule(module.ptr(), Utf8(base).c_str())) throw nb::python_error();
  });
  m.def("remove_api", [](nb::handle owner, nb::str attr) { return RemoveApi(owner.ptr(), attr.ptr()); });
  m.def("configure_saving", &ConfigureSaving, nb::arg("when"), nb::arg("tensor_list"),
        "when: \"no\", \"now\" or \"deferred\".");
  m.def("configure_slices", &ConfigureSlices, nb::arg("rules"), "(dim, size or None, begin, end or None) each.");
  m.def("save_tensor", &SaveTensor, nb::arg("file"), nb::arg("tensor"), "False: it will not be there.");
  m.def(
      "tensor_dir", [] { return rt().files->working() ? rt().files->dir() : std::string(); }, "Empty: save nothing.");
  m.def("count_tensor_file", [](uint64_t bytes, bool saved) { rt().files->Count(bytes, saved); });
  m.def("stop_saving", [](nb::str why) { rt().files->Stop(InternalError(Utf8(why))); });
  m.def(
      "limit_writing",
      [](uint64_t tensors, uint64_t ops, nb::str why) {
        const std::string reason = Utf8(why);
        rt().files->Limit(tensors, reason);
        rt().recorder->Limit(ops, reason);
      },
      nb::arg("tensors"), nb::arg("ops"), nb::arg("reason"), "Bytes of the step that has begun.");
  m.def("was_limited", [] { return rt().files->limited() || rt().recorder->limited(); });
  m.def("leaf_memo_hits", &LeafMemoHits, "Values that were not read a second time.");
  m.def("api_count", &ApiCount);
  m.def("install_apis", &InstallApis, "For measurements; start() does it.");
  m.def("remove_apis", &RemoveApis);
  m.def("install_modules", &InstallModuleHooks);
  m.def("remove_modules", &RemoveModuleHooks);
  m.def("start", &Start, nb::arg("dir"), nb::arg("task"), nb::arg("level"));
  m.def(
      "pause", [] { rt().running = false; }, "Hooks stay and record nothing.");
  m.def("resume", [] { rt().running = rt().step_open && !rt().trigger.exhausted(); });
  m.def("is_running", [] { return rt().running; });
  m.def("stop", &Stop, "Text of an error, or empty.");
  m.def("end_step", &EndStep, "Text of an error, or empty.");
  m.def("set_phase", [](nb::str name) {
    Shielded([&] {
      const std::string phase = Utf8(name);
      SetPhase(phase.empty() ? nullptr : InternName(phase));
    });
  });
  m.def("save", &Save, nb::arg("name"), nb::arg("value").none(), "One value, at level debug.");
  m.def("save_json", &SaveJson, nb::arg("name"), nb::arg("json"));
  m.def("value_json", &ValueJson, nb::arg("name"), nb::arg("value").none());
  m.def("run_unseen", &RunUnseen, "Calls a function whose calls are not recorded.");
  BindTasks(m);
  m.def("take_summary", &TakeSummary);
  m.def("hide_from_compiler", &HideFromCompiler);
  m.def("set_region_callbacks",
        [](nb::handle enter, nb::handle pause) { SetRegionCallbacks(enter.ptr(), pause.ptr()); });
  m.def("bytes_written", &BytesWritten, "By this process, all steps.");
  m.def("stop_writing", &StopWriting, nb::arg("what"), nb::arg("reason"),
        "No more 'tensors', or nothing more ('ops'), until the process ends; the reason is for the summary.");
  m.def(
      "note_skip", [](nb::str kind, nb::str text) { Shielded([&] { NoteSkip(Utf8(kind), Utf8(text)); }); },
      nb::arg("kind"), nb::arg("text"));
  m.def(
      "set_deferral",
      [](nb::object defer, nb::object fetch, bool all) {
        rt().defer_tensor = defer.release().ptr();
        rt().fetch_deferred = fetch.release().ptr();
        rt().defer_all = all;
      },
      nb::arg("defer"), nb::arg("fetch"), nb::arg("all"), "Functions of device_stats.py; `all`: of host memory, too.");
  m.def("deliver_cells", [](uintptr_t first, bool wide, nb::list slots) {
    for (nb::handle place : slots) {
      const auto [slot, cell, parts] = nb::cast<std::tuple<int64_t, int64_t, int64_t>>(place);
      DeliverCells(static_cast<int32_t>(slot), {reinterpret_cast<const char*>(first) + cell * kCellBytes, parts, wide});
    }
    ResolveDeferred();
  });
  m.def("deliver_bytes", [](int32_t slot, uintptr_t data) { DeliverBytes(slot, reinterpret_cast<const void*>(data)); });
  m.def("deliver_nothing", &DeliverNothing);
  m.def("resolve_deferred", &ResolveDeferred);
  m.def(
      "crc32",
      [](uintptr_t address, size_t bytes, uint32_t seed) {
        nb::gil_scoped_release release;
        return Crc32(reinterpret_cast<const void*>(address), bytes, seed);
      },
      nb::arg("address"), nb::arg("bytes"), nb::arg("seed") = 0, "Of memory that the caller keeps.");
  m.def("statistics_of", [](nb::handle tensor) {
    PyObject* result = StatisticsOf(tensor.ptr());
    if (result == nullptr) throw nb::python_error();
    return nb::steal(result);
  });
  m.def("crc32_of", [](nb::bytes data) { return Crc32(data.c_str(), data.size()); });
}
