// One call of a hooked function: what is recorded before and after it.
#pragma once

#include "bindings/python/api_spec.h"
#include "bindings/python/api_values.h"
#include "bindings/python/framework.h"
#include "bindings/python/runtime.h"
#include "bindings/python/works.h"

namespace msprobe {

/// False: not an op (of a function that runs many).
bool BeginApi(ApiEvent* event, const CallArgs& args);
void EndApi(ApiEvent* event, const CallArgs& args, PyObject* result);
/// Returns the phase that this one interrupts.
const std::string* SetPhase(const std::string* phase);
void NoteLeftAlone(const ApiSite* site, const CallArgs& args);
void NoteUnrecorded(const ApiSite* site);
/// torch.compile or the like traces it: counted, and left alone.
bool IsBeingCompiled(const ApiSite* site);

/// What is not an op.
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
    case ApiRole::kAside:
      ++rt().aside;
      result = call();
      --rt().aside;
      break;
    case ApiRole::kLeave:
      Shielded([&] { NoteLeftAlone(site, args); });
      result = call();
      break;
    case ApiRole::kCount: {
      const uint64_t before = rt().recorded;
      result = call();
      if (result != nullptr && rt().recorded == before) Shielded([&] { NoteUnrecorded(site); });
      break;
    }
    default: result = call();
  }
  return result;
}

/// Only the outermost hooked call of a thread is recorded.
template <typename Call>
PyObject* RunHooked(ApiSite* site, const CallArgs& args, Call call) {
  if (site->spec.watch != nullptr && site->spec.role != ApiRole::kRecord) {
    if (site->spec.before != nullptr) Shielded([&] { site->spec.before(args); });
    PyObject* result = call();
    const auto watch = [&] { site->spec.watch(args, result); };
    if (result != nullptr) return Shielded(watch), result;
    const ErrorStash stash;  // of the call
    Shielded(watch);
    return nullptr;
  }
  // Also within a recorded call.
  if (rt().step_open && !t_flags.in_tool) {
    const bool writes = site->changes_arguments || site->spec.role == ApiRole::kWrite;
    if (writes) Shielded([&] { framework().BeforeWrite(FirstArgument(args)); });
    if (AnyOpenWork() && (writes || AsksForInPlace(args))) Shielded([&] { ReadBeforeWrite(args); });
  }
  if (site->spec.role == ApiRole::kWrite) return call();
  if (!rt().running || t_flags.api_depth > 0 || t_flags.in_tool || IsBeingCompiled(site)) return call();
  if (site->spec.role != ApiRole::kRecord) return RunSpecial(site, args, call);
  if (t_flags.in_region) return call();  // what we ran would be compiled, and counted
  ApiEvent event;
  event.site = site;
  bool begun = false;
  const bool lost = !Shielded([&] { begun = BeginApi(&event, args); });
  if (lost && event.record != nullptr) rt().recorder->Discard(event.record);
  if (!begun && !lost) return call();
  // Also of an op that is lost: what it calls is not an op.
  if (site->spec.before != nullptr) Shielded([&] { site->spec.before(args); });
  ++t_flags.api_depth;
  PyObject* result = call();
  --t_flags.api_depth;
  if (site->spec.watch != nullptr && result != nullptr) Shielded([&] { site->spec.watch(args, result); });
  if (lost) return result;
  Shielded([&] { EndApi(&event, args, result); });
  return result;
}

}  // namespace msprobe
