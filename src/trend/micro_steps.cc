#include "trend/micro_steps.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "ops/micro_steps.h"

namespace msprobe {
namespace {

constexpr size_t kMaxNumberDigits = 9;
constexpr int kMostRecorded = 1'000'000;  // micro steps of a step
constexpr size_t kUnknown = static_cast<size_t>(-1);

bool IsRootModule(std::string_view name) {
  constexpr std::array<std::string_view, 3> kRoots{"Module", "Cell", "optimizer"};
  return std::any_of(kRoots.begin(), kRoots.end(), [&](std::string_view root) { return StartsWith(name, root); });
}

// A backward pass and gradients of parameters belong where their forward call does.
std::string ForwardOf(std::string_view name) {
  constexpr std::string_view kForward = ".forward";
  std::string out(name);
  for (const std::string_view other : {std::string_view(".backward"), std::string_view(".parameters_grad")}) {
    for (size_t at = out.find(other); at != std::string::npos; at = out.find(other, at + kForward.size())) {
      out.replace(at, other.size(), kForward);
    }
  }
  return out;
}

class Finder {
 public:
  explicit Finder(const ConstructFile& construct) : entries_(construct.entries), steps_(entries_.size(), kUnknown) {
    at_.reserve(entries_.size());
    for (size_t i = 0; i < entries_.size(); ++i) at_.emplace(entries_[i].name, i);
    if (construct.megatron_micro_steps) {
      TakeRecorded();
    } else {
      CountRoots();
    }
  }

  bool has_modules() const { return has_modules_; }
  int count() const { return count_; }

  /// Of a name, whether construct.json has it or not.
  int32_t StepOf(std::string_view name) const {
    auto found = at_.find(name);
    if (found == at_.end()) found = at_.find(ForwardOf(name));
    return found == at_.end() ? 0 : static_cast<int32_t>(steps_[found->second]);
  }

 private:
  void TakeRecorded() {
    has_modules_ = true;
    for (size_t i = 0; i < entries_.size(); ++i) {
      const int step = std::clamp(entries_[i].micro_step, 0, kMostRecorded);
      steps_[i] = static_cast<size_t>(step);
      count_ = std::max(count_, step + 1);
    }
  }

  void CountRoots() {
    MicroStepCounter steps(true);
    for (size_t i = 0; i < entries_.size(); ++i) {
      const std::string& name = entries_[i].name;
      if (entries_[i].parent.empty() && IsRootModule(name)) {
        const bool backward = Contains(name, ".backward");
        if (Contains(name, ".forward")) steps.Forward(name.substr(0, CallNumberOf(name).begin));
        // A backward pass before any forward one belongs to the step before.
        if (backward && steps.has_begun()) steps.Backward();
        has_modules_ = true;
        if (!backward) steps_[i] = Current(steps);
      }
      before_.push_back(Current(steps));
    }
    count_ = steps.current() + 1;
    walked_.assign(entries_.size(), kUnknown);
    for (size_t i = 0; i < entries_.size(); ++i) FollowParents(i);
  }

  static size_t Current(const MicroStepCounter& steps) { return static_cast<size_t>(steps.current()); }

  // To the root, whose step all on the way get. Without one (functions outside of modules, a parent that is not there,
  // a loop) the micro step is the one that was running.
  void FollowParents(size_t start) {
    std::vector<size_t> way;
    size_t step = kUnknown;
    // Who is met again on one way stands in a loop.
    for (size_t i = start; step == kUnknown && walked_[i] != start;) {
      walked_[i] = start;
      way.push_back(i);
      const size_t forward = Forward(i);
      if (steps_[i] != kUnknown) {
        step = steps_[i];
      } else if (forward != i && forward != kUnknown) {
        i = forward;
      } else {
        const auto parent = entries_[i].parent.empty() ? at_.end() : at_.find(ForwardOf(entries_[i].parent));
        if (parent == at_.end()) break;
        i = parent->second;
      }
    }
    for (const size_t i : way) {
      if (steps_[i] == kUnknown) steps_[i] = step == kUnknown ? before_[start] : step;
    }
  }

  size_t Forward(size_t i) const {
    const std::string forward = ForwardOf(entries_[i].name);
    const auto found = at_.find(forward);
    return found == at_.end() ? kUnknown : found->second;
  }

  const std::vector<ConstructEntry>& entries_;
  std::unordered_map<std::string_view, size_t> at_;
  std::vector<size_t> steps_, before_;
  std::vector<size_t> walked_;  // by the way from which entry each was reached last
  bool has_modules_ = false;
  int count_ = 1;
};

// Calls of one name in one micro step, to be numbered from 0.
class Renumbering {
 public:
  void Add(std::string_view name, int32_t step, size_t op) {
    const CallNumber call = CallNumberOf(name);
    if (call.number < 0) return;
    std::string key(name.substr(0, call.begin));
    key.append(name.substr(call.end)).append("\n").append(std::to_string(step));
    groups_[std::move(key)].push_back({call.number, op});
  }
  void Number(std::vector<MicroPlace>* places) {
    for (auto& [name, calls] : groups_) {
      std::stable_sort(calls.begin(), calls.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      for (size_t i = 0; i < calls.size(); ++i) {
        if (calls[i].second != kUnknown) (*places)[calls[i].second].call = static_cast<int64_t>(i);
      }
    }
  }

 private:
  std::unordered_map<std::string, std::vector<std::pair<int64_t, size_t>>> groups_;
};

}  // namespace

CallNumber CallNumberOf(std::string_view name) {
  CallNumber call{name.size(), name.size(), -1};
  size_t end = name.size();
  for (int tries = 0; tries < 2; ++tries) {
    const size_t dot = name.substr(0, end).rfind('.');
    if (dot == std::string_view::npos) return call;
    const std::string_view part = name.substr(dot + 1, end - dot - 1);
    if (IsDigits(part) && part.size() <= kMaxNumberDigits) return {dot, end, std::stoll(std::string(part))};
    end = dot;
  }
  return call;
}

MicroSteps FindMicroSteps(const ConstructFile& construct, const std::vector<std::string_view>& ops) {
  const Finder finder(construct);
  MicroSteps out;
  if (!finder.has_modules()) return out;
  out.count = finder.count();
  out.places.resize(ops.size());
  std::unordered_map<std::string_view, size_t> dumped;
  dumped.reserve(ops.size());
  Renumbering numbers;
  for (size_t i = 0; i < ops.size(); ++i) {
    dumped.emplace(ops[i], i);
    out.places[i].micro_step = finder.StepOf(ops[i]);
    numbers.Add(ops[i], out.places[i].micro_step, i);
  }
  // What ran without being dumped counts as well.
  for (const ConstructEntry& entry : construct.entries) {
    if (dumped.count(entry.name) == 0) numbers.Add(entry.name, finder.StepOf(entry.name), kUnknown);
  }
  numbers.Number(&out.places);
  return out;
}

}  // namespace msprobe
