// One call of a hooked function: what is recorded before and after it.
#pragma once

#include "bindings/api_site.h"
#include "bindings/py.h"
#include "bindings/runtime.h"
#include "capture/record.h"

namespace msprobe {

enum class SiteKind { kBuiltin, kMethod, kPython, kAttribute };

struct NameCounts;

/// A hooked function. Lives as long as the process: methods bound while it was hooked still point here.
struct ApiSite {
  SiteKind kind = SiteKind::kBuiltin;
  Ref owner, attr, function;
  const std::string* base = nullptr;
  ApiSpec spec;
  bool on = false;
  NameCounts* counts = nullptr;    // shared by functions of one name: torch.norm, torch.linalg.norm
  bool changes_arguments = false;  // `add_`, `__iadd__`, collectives
  bool takes_self = false;         // builtin methods get their object beside the arguments
  // kBuiltin, kMethod: the table entry that stands in for the original one
  PyMethodDef definition{};
  PyMethodDef *saved_definition = nullptr, *hooked_definition = nullptr;
  PyCFunction original = nullptr;
  vectorcallfunc saved_vectorcall = nullptr;
  // kPython
  Ref saved_code, hooked_code, twin, signature;
  // kAttribute
  Ref attribute;
  bool owner_has_attribute = false;
};

/// Arguments in whichever form the call has them; all borrowed.
struct CallArgs {
  PyObject* self = nullptr;
  PyObject* tuple = nullptr;          // positional
  Py_ssize_t skip = 0;                // so many of them are not arguments of the op
  PyObject* const* vector = nullptr;  // or these
  Py_ssize_t count = 0;
  PyObject* kwargs = nullptr;  // dict
  PyObject* names = nullptr;   // or names of vector[count...]
};

struct ApiEvent {
  ApiSite* site = nullptr;
  OpName name;
  uint64_t generation = 0;
  bool collect = false;
  Record* record = nullptr;
};

/// False: not an op (of a function that runs many).
bool BeginApi(ApiEvent* event, const CallArgs& args);
void EndApi(ApiEvent* event, const CallArgs& args, PyObject* result);
void RecordOutput(const ApiSpec& spec, const CallArgs& args, PyObject* result, Record* record);
/// Returns the phase that this one interrupts.
const std::string* SetPhase(const std::string* phase);
void NoteLeftAlone(const ApiSite* site, const CallArgs& args);
/// torch.compile or the like traces it: counted, and left alone.
bool IsBeingCompiled(const ApiSite* site);

/// What is no op.
template <typename Call>
PyObject* RunSpecial(ApiSite* site, const CallArgs& args, Call call) {
  PyObject* result = nullptr;
  switch (site->spec.role) {
    case ApiRole::kPhase: {
      const std::string* before = nullptr;
      Shielded([&] { before = SetPhase(site->spec.phase); });
      result = call();
      Shielded([&] { SetPhase(before); });
      break;
    }
    case ApiRole::kMute:
      ++t_flags.api_depth;
      result = call();
      --t_flags.api_depth;
      break;
    case ApiRole::kLeave:
      Shielded([&] { NoteLeftAlone(site, args); });
      result = call();
      break;
    default: result = call();
  }
  return result;
}

/// Only the outermost hooked call of a thread is recorded.
template <typename Call>
PyObject* RunHooked(ApiSite* site, const CallArgs& args, Call call) {
  if (site->spec.watch != nullptr) {
    if (site->spec.before != nullptr) Shielded([&] { site->spec.before(args); });
    PyObject* result = call();
    Shielded([&] { site->spec.watch(args, result); });
    return result;
  }
  if (!rt().running || t_flags.api_depth > 0 || t_flags.in_tool || IsBeingCompiled(site)) return call();
  if (site->spec.role != ApiRole::kRecord) return RunSpecial(site, args, call);
  ApiEvent event;
  event.site = site;
  bool begun = false;
  const bool lost = !Shielded([&] { begun = BeginApi(&event, args); });
  if (lost && event.record != nullptr) rt().recorder->Discard(event.record);
  if (!begun && !lost) return call();
  // Also of an op that is lost: what it calls is no op.
  ++t_flags.api_depth;
  PyObject* result = call();
  --t_flags.api_depth;
  if (lost) return result;
  Shielded([&] { EndApi(&event, args, result); });
  return result;
}

}  // namespace msprobe
