// Hooks of nn.Module, level L0 and mix.
#pragma once

#include "bindings/py.h"

namespace msprobe {

/// Prepares the hooks of one module; `base` is "Module.{path}.{Class}". They work while installed. False: a Python
/// error.
bool AddModule(PyObject* module, const char* base);
/// Puts the hooks of all added modules into their dicts of hooks, or takes them out.
void InstallModuleHooks();
void RemoveModuleHooks();
bool InitModuleTypes();
PyObject* ModuleHookType();

}  // namespace msprobe
