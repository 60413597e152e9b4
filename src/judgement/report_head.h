// What the page of a report concludes, in its first bytes: a list of reports need not read them whole.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace msprobe {

struct ReportHead {
  std::string kind;     // "compare", "doctor", "curves", "configuration", "laboratory", "checkpoints", "certificate"
  std::string outcome;  // "origin", "equal", "round_off", "unknown": the colour of the card
  std::string en, zh;   // the headline
};

/// The page with the head inside.
std::string WithReportHead(std::string_view page, const ReportHead& head);

/// Nothing for a file without one, and for what cannot be read.
std::optional<ReportHead> ReadReportHead(const std::string& path);

}  // namespace msprobe
