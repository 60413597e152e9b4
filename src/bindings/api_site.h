// Hooking of functions in place: the function object stays the same object, so `f is torch.relu` answers as without the
// tool and calls through references taken earlier are seen.
#pragma once

#include <string>
#include <vector>

#include "bindings/py.h"
#include "capture/op_filter.h"
#include "capture/op_name.h"

namespace msprobe {

struct ApiSpec {
  std::string base;  // "Functional.relu"
  Risk risk = Risk::kFocus;
  bool in_place = true;                            // false: exchange the attribute of the owner
  bool dropout = false;                            // with p=0 nothing happens, and no backward is recorded
  bool distributed = false;                        // outputs are the arguments after the call
  std::vector<int> ignored_args, ignored_outputs;  // positions that hold garbage and are shown as null
  std::string ignored_keyword;
  const char* phase = nullptr;  // not an op: what runs inside has this parent in construct.json
};

/// False and `why` when the object can be hooked in no way.
bool AddApi(PyObject* owner, PyObject* attr, const ApiSpec& spec, std::string* why);
void InstallApis();
void RemoveApis();
/// The hook of one function for good. False: there is none.
bool RemoveApi(PyObject* owner, PyObject* attr);
size_t ApiCount();
bool InitApiTypes();

}  // namespace msprobe
