// Hooking of functions in place: the function object stays the same object, so `f is torch.relu` answers as without the
// tool and calls through references taken earlier are seen.
#pragma once

#include <string>

#include "bindings/python/api_spec.h"

namespace msprobe {

/// False and `why` when the object can be hooked in no way.
bool AddApi(PyObject* owner, PyObject* attr, const ApiSpec& spec, std::string* why);
void InstallApis();
/// Those that wait for open works stay until none is open.
void RemoveApis();
/// The hook of one function for good. False: there is none.
bool RemoveApi(PyObject* owner, PyObject* attr);
/// What the compiler must not see: all while it traces, and while what it made runs those whose hook changes what the
/// guards look at.
enum class HiddenApis { kNone, kVisible, kAll };
void HideApis(HiddenApis which);
bool ApisInstalled();
size_t ApiCount();
bool InitApiTypes();

}  // namespace msprobe
