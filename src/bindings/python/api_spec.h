// A hooked function: what its hook does, where it is, and one call of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bindings/python/py.h"
#include "capture/op_filter.h"
#include "capture/op_name.h"
#include "capture/record.h"

namespace msprobe {

struct NameCounts;

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

/// What a hook of a function does with its calls.
enum class ApiRole : uint8_t {
  kRecord,
  kPhase,    // not an op: what runs inside has this parent in construct.json
  kMute,     // what runs inside is compiled code; nothing of it is recorded
  kLeave,    // a region that is left alone, as TorchScript is: counted by name
  kAside,    // not the training (a trial that finds shapes): what runs inside takes its numbers and is not recorded
  kCount,    // an op that is not asked for: counted where nothing that it calls is recorded either
  kWatch,    // not an op: `watch` is told of each call
  kWrite,    // not an op: it may change tensors where they lie
  kInstead,  // nothing is recorded: `instead` makes the call
};

struct ApiSpec {
  std::string base;  // "Functional.relu"
  Risk risk = Risk::kFocus;
  bool in_place = true;                            // false: exchange the attribute of the owner
  bool dropout = false;                            // with p=0 nothing happens, and no backward is recorded
  bool distributed = false;                        // outputs are the arguments after the call
  bool fills = false;                              // the same where the call returns nothing
  std::vector<int> ignored_args, ignored_outputs;  // positions that hold garbage and are shown as null
  std::string ignored_keyword;
  ApiRole role = ApiRole::kRecord;
  const std::string* phase = nullptr;                          // kPhase
  void (*before)(const CallArgs&) = nullptr;                   // kWatch, kRecord
  void (*watch)(const CallArgs&, PyObject* result) = nullptr;  // after the call; kWatch: result null: it raised
  bool (*stays)() = nullptr;                                   // kWatch: hooked after stop(), too, while this is true
  bool skip_owner = false;                                     // of compiled code: the module whose method it was
  bool skip_self = false;                                      // of a method in Python
  bool writes = false;                                         // changes its arguments, though its name does not say so
  /// Of a Python function: makes the call, or leaves it to the function by null without an error.
  PyObject* (*shortcut)(PyObject* args) = nullptr;
  Ref stand_in;  // takes the place of the attribute; calls are not seen
  Ref instead;   // kInstead: (function, args, kwargs) -> what the caller gets; for exchanged attributes
  /// One function that runs many ops (torch.ops, Triton): tells the base name by the first argument, or None.
  Ref resolve;
  /// The same without Python, by the object that is called; null: no op.
  const std::string* (*name_of)(PyObject* object) = nullptr;
  /// What such an object was made with and its calls do not say, as a dict; null: nothing.
  PyObject* (*attributes_of)(PyObject* object) = nullptr;
};

enum class SiteKind { kBuiltin, kMethod, kPython, kAttribute };

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
  Ref held;  // in the class, where that is a static method or a method of the class
  bool owner_has_attribute = false;
};

/// One recorded call.
struct ApiEvent {
  ApiSite* site = nullptr;
  OpName name;
  uint64_t generation = 0;
  bool collect = false;
  Record* record = nullptr;
  std::shared_ptr<void> prepared;  // by the framework, for its backward
};

}  // namespace msprobe
