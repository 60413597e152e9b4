// Who ran inside whom: the modules that are open on each thread and the parent of each op, as construct.json lists
// them.
#pragma once

#include <list>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capture/op_name.h"

namespace msprobe {

using ParentPair = std::pair<OpName, OpName>;  // op, parent (empty: null)

class ConstructTracker {
 public:
  ConstructTracker() { Reset(); }
  /// Forget everything; threads notice at their next call.
  void Reset();
  /// A module's forward or backward begins on this thread: its parent is the innermost open module of the thread or,
  /// when none is open, the last begun module of any thread whose path contains this one (autograd threads,
  /// recomputation).
  void BeginModule(const OpName& name);
  /// ... ends, on this thread or another.
  void EndModule(const OpName& name);
  /// An op has been recorded (a module when it ends, too). With `with_apis` APIs are listed under the open module.
  /// Modules begun since the last call are listed behind it, so children precede their parents.
  void AddOp(const OpName& name, bool with_apis);
  /// Of an op or an open module, its parent; an op that is not a module is taken as one of this thread.
  OpName ParentOf(const OpName& name);
  /// Modules are listed only above ops that are: for tasks that keep few. AddOp() lists the op and what is open above
  /// it.
  void set_on_demand(bool on) { on_demand_ = on; }
  /// Lists an op of which this is known from earlier.
  void List(const OpName& name, const OpName& parent);
  /// A phase such as "optimizer" is the parent of what is recorded in it and in no module; null ends it. Returns the
  /// one that this one interrupts.
  const std::string* SetPhase(const std::string* phase) { return std::exchange(phase_, phase); }
  /// The parents found since the last call.
  std::vector<ParentPair> Take();
  size_t size() const { return out_.size(); }

 private:
  struct ThreadState;
  struct Open {
    std::list<OpName>::iterator place;
    OpName parent;
    bool listed = false;
  };
  ThreadState& Here();
  OpName FindEnclosing(const OpName& name) const;
  void ListWithModulesAbove(const OpName& name);

  uint64_t epoch_ = 0;
  std::list<OpName> open_;
  std::unordered_map<OpName, Open, OpNameHash> where_;
  std::vector<ParentPair> begun_, out_;
  const std::string* phase_ = nullptr;
  std::vector<const std::string*> phases_seen_;
  bool on_demand_ = false;
};

}  // namespace msprobe
