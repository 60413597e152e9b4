// The tables of acc_check, which grow call by call, so that a check that was interrupted goes on where it was.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "lab/standards/status.h"

namespace msprobe {

/// How a result compares with float64.
enum class Float64Verdict : uint8_t { kRight, kRoundOff, kSuspicious, kWrong };
std::string_view Float64VerdictText(Float64Verdict v);
/// Of the error and of what rounding explains, in ulp. Up to `coarse` ulp nothing is more than suspicious.
Float64Verdict VerdictOf(double error, double limit, double coarse = 0);
/// Of the details of a dump of MindSpore, as mindstudio-probe has them.
const std::vector<std::string>& MindSporeCheckColumns();
/// Of the third table.
const std::vector<std::string>& Float64Columns();

/// A call as all tables have it.
struct CheckedCall {
  std::string full;
  LabStatus forward = LabStatus::kNone, backward = LabStatus::kNone;
  std::string message;
  std::vector<std::vector<std::string>> rows;     // of the details, as CheckColumns()
  std::vector<std::vector<std::string>> float64;  // of the comparison with float64
  std::optional<Float64Verdict> verdict;          // the worst of its results
  double times = 0;   // the largest error of a result or element, in multiples of what rounding explains
  bool known = true;  // every result that is off comes from a kernel that is known to be inaccurate
};

class CheckTables {
 public:
  /// `columns`: of the details, CheckColumns() or MindSporeCheckColumns().
  explicit CheckTables(const std::vector<std::string>& columns) : columns_(columns) {}
  CheckTables(const CheckTables&) = delete;
  CheckTables& operator=(const CheckTables&) = delete;
  ~CheckTables();

  /// accuracy_checking_{result,details,float64}_{time}.csv in `folder`.
  Status Create(const std::string& folder);
  /// Goes on with accuracy_checking_result_{time}.csv and the others beside it; that of float64 may be missing. `done`
  /// gets the calls that are in it; details of others, which the interrupt cut off, are dropped.
  Status Continue(const std::string& result, std::set<std::string, std::less<>>* done);

  /// On disk when it returns: details first, so that a call in the result has all of its rows.
  Status Add(const CheckedCall& call);

  const std::string& result() const { return result_; }
  const std::string& details() const { return details_; }
  const std::string& float64() const { return float64_; }
  /// "20260101000000" of the files' names.
  const std::string& time() const { return time_; }

 private:
  void SetPaths(const std::string& folder);
  Status OpenToAppend();
  static Status Append(int fd, const std::string& path, const std::string& text);

  const std::vector<std::string>& columns_;
  std::string result_, details_, float64_, time_;
  int result_fd_ = -1, details_fd_ = -1, float64_fd_ = -1;
};

}  // namespace msprobe
