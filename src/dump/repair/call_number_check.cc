// Gaps in the numbers of the calls of one function or module.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/message.h"
#include "base/text.h"
#include "dump/repair/op_check.h"
#include "dump/repair/tally.h"
#include "json/members.h"

namespace msprobe {
namespace {

/// base.N.forward, base.forward.N, base.parameters_grad.N: "base|kind" and N.
bool SplitNumber(std::string_view name, std::string* series, uint64_t* number) {
  const size_t last = name.rfind('.');
  if (last == std::string_view::npos || last == 0) return false;
  const size_t before = name.rfind('.', last - 1);
  if (before == std::string_view::npos) return false;
  std::string_view a = name.substr(before + 1, last - before - 1), b = name.substr(last + 1);
  if (IsDigits(a) && b == "forward") {
    std::swap(a, b);  // now a is the kind, b the number
  } else if (!IsDigits(b) || a != "forward") {
    return false;  // gradients of some calls only are usual
  }
  if (b.empty() || b.size() > 9) return false;
  *series = std::string(name.substr(0, before)) + "|" + std::string(a);
  *number = std::stoull(std::string(b));
  return true;
}

class CallNumberCheck : public OpCheck {
 public:
  void SeeOp(std::string_view name) override {
    uint64_t number = 0;
    if (SplitNumber(name, &key_, &number)) series_[key_].Add(number);
  }

  void Report(std::vector<VerifyFinding>* out) override {
    std::map<std::string, uint64_t> gaps;  // in order, so that the output is always the same
    uint64_t missing = 0;
    for (const auto& [key, s] : series_) {
      if (s.last + 1 > s.count) missing += gaps[key] = s.last + 1 - s.count;
    }
    if (gaps.empty()) return;
    std::string names;
    size_t shown = 0;
    for (const auto& [key, count] : gaps) {
      if (++shown > Tally::kMostNames) break;
      names += (names.empty() ? "" : ", ") + Shown(key.substr(0, key.find('|'))) + " (" + std::to_string(count) + ")";
    }
    if (gaps.size() > Tally::kMostNames) names += ", ...";
    out->push_back({"gap", missing, Msg("{} call numbers are missing (filtered, or lost): {}", missing, names), true});
  }

 private:
  struct Series {
    uint64_t count = 0, last = 0;
    void Add(uint64_t number) {
      ++count;
      last = std::max(last, number);
    }
  };

  std::unordered_map<std::string, Series> series_;
  std::string key_;
};

}  // namespace

std::unique_ptr<OpCheck> MakeCallNumberCheck() { return std::make_unique<CallNumberCheck>(); }

}  // namespace msprobe
