// Which ops are recorded: scope and list of the configuration, else the risk level.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "capture/op_name.h"

namespace msprobe {

enum class Risk : uint8_t { kLow, kFocus, kCore };

class OpFilter {
 public:
  struct Config {
    std::string level = "L1";          // L0, L1, mix
    std::vector<std::string> scope;    // empty, or two full names
    std::vector<std::string> list;     // parts of names
    std::string risk_level = "FOCUS";  // CORE, FOCUS, ALL
  };
  /// kUsage when the scope's names do not fit the level.
  Status Configure(Config config);
  bool has_names() const { return !config_.scope.empty() || !config_.list.empty(); }
  /// Looks at scope and list only; a range opens and closes as names pass by, so each event is asked once.
  bool CheckName(const OpName& name);
  bool CheckRisk(Risk risk) const;
  /// Modules open and close ranges at their begin and end.
  void BeginModule(const OpName& name);
  void EndModule(const OpName& name);
  /// A new step: ranges are closed.
  void Reset();

 private:
  enum class Kind { kApiRange, kModuleRange, kMix };
  bool InList(std::string_view name) const;
  bool InRange() const { return config_.scope.empty() || in_scope_; }
  Config config_;
  Kind kind_ = Kind::kApiRange;
  bool in_scope_ = false;
  std::unordered_set<std::string> inside_listed_;  // open modules whose names match the list (mix)
};

}  // namespace msprobe
