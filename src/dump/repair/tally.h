// Counts one kind of trouble and keeps the first names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/message.h"
#include "dump/repair/verify_finding.h"
#include "json/members.h"

namespace msprobe {

class Tally {
 public:
  static constexpr size_t kMostNames = 3;  // shown

  void Add(std::string_view name) {
    if (count_++ < kMostNames) names_ += (names_.empty() ? "" : ", ") + Shown(name);
  }
  uint64_t count() const { return count_; }
  void Report(const char* kind, const Message& what, bool note, std::vector<VerifyFinding>* out) const {
    if (count_ == 0) return;
    const std::string names = count_ > kMostNames ? names_ + ", ..." : names_;
    out->push_back({kind, count_, Msg("{}: {}", what, names), note});
  }

 private:
  uint64_t count_ = 0;
  std::string names_;
};

}  // namespace msprobe
