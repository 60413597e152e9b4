#include "capture/construct.h"

#include <algorithm>
#include <atomic>

namespace msprobe {
namespace {

// `base` without its last `parts` dotted parts; empty when there are not enough.
std::string_view Shorten(std::string_view base, int parts) {
  for (; parts > 0; --parts) {
    const size_t dot = base.rfind('.');
    if (dot == std::string_view::npos) return {};
    base = base.substr(0, dot);
  }
  return base;
}

}  // namespace

struct ConstructTracker::ThreadState {
  uint64_t epoch = 0;
  std::vector<OpName> stack;
  OpName Parent() const { return stack.empty() ? OpName() : stack.back(); }
};

ConstructTracker::ThreadState& ConstructTracker::Here() {
  thread_local ThreadState state;
  if (state.epoch != epoch_) {
    state.epoch = epoch_;
    state.stack.clear();
  }
  // What another thread has closed: autograd runs on threads of its own, stop() on that of the user.
  while (!state.stack.empty() && !where_.contains(state.stack.back())) state.stack.pop_back();
  return state;
}

void ConstructTracker::Reset() {
  // Numbers are never used twice in a process, so that a thread cannot mistake the state of another tracker for its
  // own.
  static std::atomic<uint64_t> next{1};
  epoch_ = ++next;
  open_.clear();
  where_.clear();
  begun_.clear();
  out_.clear();
  phase_ = nullptr;
  phases_seen_.clear();
}

OpName ConstructTracker::FindEnclosing(const OpName& name) const {
  // Module.{path}.{last}.{Class}: the enclosing module's text without its class is this one's without class and last
  // part.
  const std::string_view wanted = Shorten(*name.base, 2);
  if (wanted.empty() || wanted == "Module") return {};
  for (auto it = open_.rbegin(); it != open_.rend(); ++it) {
    if (Shorten(*it->base, 1) == wanted) return *it;
  }
  return {};
}

void ConstructTracker::BeginModule(const OpName& name) {
  ThreadState& here = Here();
  const OpName parent = here.stack.empty() ? FindEnclosing(name) : here.Parent();
  if (!on_demand_) begun_.emplace_back(name, parent);
  if (!where_.contains(name)) where_[name] = {open_.insert(open_.end(), name), parent};
  here.stack.push_back(name);
}

void ConstructTracker::EndModule(const OpName& name) {
  ThreadState& here = Here();
  if (auto it = where_.find(name); it != where_.end()) {
    open_.erase(it->second.place);
    where_.erase(it);
  }
  const auto mine = std::find(here.stack.rbegin(), here.stack.rend(), name);
  if (mine != here.stack.rend()) here.stack.erase(std::next(mine).base());
}

void ConstructTracker::AddOp(const OpName& name, bool with_apis) {
  // A closure runs the model within the optimizer.
  if (phase_ != nullptr && !name.IsModule() && Here().stack.empty()) {
    List(name, {phase_, 0, NameForm::kPlain});
  } else if (on_demand_) {
    if (with_apis || name.IsModule()) ListWithModulesAbove(name);
  } else if (with_apis && !name.IsModule()) {
    out_.emplace_back(name, Here().Parent());
  }
  out_.insert(out_.end(), begun_.begin(), begun_.end());
  begun_.clear();
}

OpName ConstructTracker::ParentOf(const OpName& name) {
  if (phase_ != nullptr && !name.IsModule() && Here().stack.empty()) return {phase_, 0, NameForm::kPlain};
  if (const auto it = where_.find(name); it != where_.end()) return it->second.parent;
  return name.IsModule() ? OpName() : Here().Parent();
}

void ConstructTracker::List(const OpName& name, const OpName& parent) {
  if (parent.form == NameForm::kPlain &&
      std::find(phases_seen_.begin(), phases_seen_.end(), parent.base) == phases_seen_.end()) {
    phases_seen_.push_back(parent.base);
    out_.emplace_back(parent, OpName());
  }
  out_.emplace_back(name, parent);
}

void ConstructTracker::ListWithModulesAbove(const OpName& name) {
  OpName next = name;
  if (!name.IsModule()) {
    next = Here().Parent();
    out_.emplace_back(name, next);
  }
  for (auto it = where_.find(next); it != where_.end() && !it->second.listed; it = where_.find(it->second.parent)) {
    it->second.listed = true;
    out_.emplace_back(it->first, it->second.parent);
  }
}

std::vector<ParentPair> ConstructTracker::Take() { return std::exchange(out_, {}); }

}  // namespace msprobe
