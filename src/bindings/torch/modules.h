// Hooks of nn.Module, level L0 and mix.
#pragma once

#include "bindings/python/api_spec.h"
#include "bindings/python/py.h"

namespace msprobe {

/// Prepares the hooks of one module; `base` is "Module.{path}.{Class}". They work while installed. False: a Python
/// error.
bool AddModule(PyObject* module, const char* base);
/// Puts the hooks of all added modules into their dicts of hooks, or takes them out.
void InstallModuleHooks();
void RemoveModuleHooks();
/// Runs after a hook was registered at a module.
void AfterRegisterHook(const CallArgs& args, PyObject* result);
/// What the compiler finds none of our hooks in: all modules while it traces, those with hooks of the user while what
/// it made runs, for there the guards count them. The dicts are exchanged, not changed: somebody may be iterating over
/// them.
enum class HiddenHooks { kNone, kCrowded, kAll };
void HideModuleHooks(HiddenHooks which);

}  // namespace msprobe
