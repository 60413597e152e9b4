// Hooking of functions in place: the function object stays the same object, so `f is torch.relu` answers as without the
// tool and calls through references taken earlier are seen.
#pragma once

#include <string>
#include <vector>

#include "bindings/py.h"
#include "capture/op_filter.h"
#include "capture/op_name.h"

namespace msprobe {

struct CallArgs;

/// What a hook of a function does with its calls.
enum class ApiRole : uint8_t {
  kRecord,
  kPhase,  // not an op: what runs inside has this parent in construct.json
  kMute,   // what runs inside is compiled code; nothing of it is recorded
  kLeave,  // a region that is left alone, as TorchScript is: counted by name
  kWatch,  // not an op: `watch` is told of each call
};

struct ApiSpec {
  std::string base;  // "Functional.relu"
  Risk risk = Risk::kFocus;
  bool in_place = true;                            // false: exchange the attribute of the owner
  bool dropout = false;                            // with p=0 nothing happens, and no backward is recorded
  bool distributed = false;                        // outputs are the arguments after the call
  std::vector<int> ignored_args, ignored_outputs;  // positions that hold garbage and are shown as null
  std::string ignored_keyword;
  ApiRole role = ApiRole::kRecord;
  const std::string* phase = nullptr;                          // kPhase
  void (*before)(const CallArgs&) = nullptr;                   // kWatch
  void (*watch)(const CallArgs&, PyObject* result) = nullptr;  // kWatch: after the call; result null: it raised
  bool skip_self = false;                                      // of a method in Python
  /// One function that runs many ops (torch.ops, Triton): tells the base name by the first argument, or None.
  Ref resolve;
};

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
