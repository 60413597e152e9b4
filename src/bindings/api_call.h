// One call of a hooked function: what is recorded before and after it.
#pragma once

#include "bindings/api_site.h"
#include "bindings/py.h"
#include "bindings/runtime.h"
#include "capture/record.h"

namespace msprobe {

enum class SiteKind { kBuiltin, kMethod, kPython, kAttribute };

/// A hooked function. Lives as long as the process: methods bound while it was hooked still point here.
struct ApiSite {
  SiteKind kind = SiteKind::kBuiltin;
  Ref owner, attr, function;
  const std::string* base = nullptr;
  ApiSpec spec;
  int32_t count = 0;
  uint64_t generation = 0;
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

void BeginApi(ApiEvent* event, const CallArgs& args);
void EndApi(ApiEvent* event, const CallArgs& args, PyObject* result);
void SetPhase(const char* phase);
/// torch.compile or the like traces it: counted, and left alone.
bool IsBeingCompiled(const ApiSite* site);

/// Only the outermost hooked call of a thread is recorded.
template <typename Call>
PyObject* RunHooked(ApiSite* site, const CallArgs& args, Call call) {
  if (!rt().running || t_flags.api_depth > 0 || t_flags.in_tool || IsBeingCompiled(site)) return call();
  if (site->spec.phase != nullptr) {
    SetPhase(site->spec.phase);
    PyObject* result = call();
    SetPhase(nullptr);
    return result;
  }
  ApiEvent event;
  event.site = site;
  BeginApi(&event, args);
  ++t_flags.api_depth;
  PyObject* result = call();
  --t_flags.api_depth;
  EndApi(&event, args, result);
  return result;
}

}  // namespace msprobe
