#include "capture/op_filter.h"

#include <algorithm>

#include "base/text.h"

namespace msprobe {
namespace {

bool IsDirection(std::string_view part) { return part == "forward" || part == "backward"; }

bool IsModuleCall(std::string_view name) {
  const size_t number = name.rfind('.');
  if (number == std::string_view::npos || !IsDigits(name.substr(number + 1))) return false;
  const size_t direction = name.rfind('.', number - 1);
  if (direction == std::string_view::npos || !IsDirection(name.substr(direction + 1, number - direction - 1)))
    return false;
  return StartsWith(name, "Module.") || StartsWith(name, "Cell.");
}

bool IsApiCall(std::string_view name) {
  const size_t direction = name.rfind('.');
  if (direction == std::string_view::npos || direction == 0 || !IsDirection(name.substr(direction + 1))) return false;
  const size_t number = name.rfind('.', direction - 1);
  if (number == std::string_view::npos || !IsDigits(name.substr(number + 1, direction - number - 1))) return false;
  return !StartsWith(name, "Module.") && !StartsWith(name, "Cell.") && name.find('.') < number;
}

}  // namespace

Status OpFilter::Configure(Config config) {
  if (!config.scope.empty() && config.scope.size() != 2) {
    return UsageError("scope must hold two full op names, the first and the last to record; it holds " +
                      std::to_string(config.scope.size()));
  }
  for (const std::string& name : config.scope) {
    const bool api = IsApiCall(name), module = IsModuleCall(name);
    const bool fits = config.level == "L1" ? api : config.level == "L0" ? module : api || module;
    if (!fits) {
      return UsageError("scope: '" + name + "' is not a full op name of level " + config.level +
                        "; copy one from dump.json, such as " +
                        (config.level == "L0" ? "Module.fc.Linear.forward.0" : "Functional.linear.0.forward"));
    }
  }
  config_ = std::move(config);
  kind_ = config_.level == "mix"                            ? Kind::kMix
          : config_.level == "L0" && !config_.scope.empty() ? Kind::kModuleRange
                                                            : Kind::kApiRange;
  Reset();
  return OkStatus();
}

void OpFilter::Reset() {
  in_scope_ = false;
  inside_listed_.clear();
}

bool OpFilter::InList(std::string_view name) const {
  return std::any_of(config_.list.begin(), config_.list.end(),
                     [&](const std::string& part) { return Contains(name, part); });
}

bool OpFilter::CheckName(const OpName& op) {
  const std::string name = op.str();
  // Modules move the range at their begin and end, so that it covers what runs inside them.
  const bool names_move_range = kind_ != Kind::kModuleRange && !config_.scope.empty() && !op.IsModule();
  if (names_move_range && name == config_.scope[0]) in_scope_ = true;
  const bool listed = config_.list.empty() || InList(name) || (kind_ == Kind::kMix && !inside_listed_.empty());
  const bool wanted = InRange() && listed;
  if (names_move_range && name == config_.scope[1]) in_scope_ = false;
  return wanted;
}

bool OpFilter::CheckRisk(Risk risk) const {
  if (config_.risk_level == "ALL" || config_.level == "L0") return true;
  return config_.risk_level == "CORE" ? risk == Risk::kCore : risk != Risk::kLow;
}

void OpFilter::BeginModule(const OpName& op) {
  if (!has_names() || kind_ == Kind::kApiRange) return;
  std::string name = op.str();
  if (!config_.scope.empty() && name == config_.scope[0]) in_scope_ = true;
  if (kind_ == Kind::kMix && !config_.list.empty() && InList(name)) inside_listed_.insert(std::move(name));
}

void OpFilter::EndModule(const OpName& op) {
  if (!has_names() || kind_ == Kind::kApiRange) return;
  const std::string name = op.str();
  if (!config_.scope.empty() && name == config_.scope[1]) in_scope_ = false;
  inside_listed_.erase(name);
}

}  // namespace msprobe
