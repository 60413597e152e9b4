// Which forward and backward pass of a step a module below no other belongs to.
#pragma once

#include <string>
#include <string_view>

namespace msprobe {

/// Counts micro steps by the calls of modules below no other, in the order they ran. A forward call begins the next
/// micro step when a backward pass came before it. In pipelines several forward passes run before the first backward
/// pass; where `again_begins`, so does a call of the module that began the micro step.
class MicroStepCounter {
 public:
  explicit MicroStepCounter(bool again_begins) : again_begins_(again_begins) {}

  /// `module` without its call number.
  void Forward(std::string_view module) {
    if (backward_seen_ || (again_begins_ && has_begun_ && module == first_)) {
      ++current_;
      first_ = module;
    } else if (!has_begun_) {
      first_ = module;
    }
    has_begun_ = true;
    backward_seen_ = false;
  }
  void Backward() { backward_seen_ = true; }

  int current() const { return current_; }
  /// Whether any forward call was counted.
  bool has_begun() const { return has_begun_; }

 private:
  bool again_begins_, has_begun_ = false, backward_seen_ = false;
  int current_ = 0;
  std::string first_;  // the module that began the micro step
};

}  // namespace msprobe
