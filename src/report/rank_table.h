// Many ranks at a glance: which of them differ, and a file with a line for each.
#pragma once

#include "report/compare_report.h"

namespace msprobe {

/// The story, and which ranks a difference begins on, reaches, or leaves alone.
Message RanksAnswer(const CompareReport& report);
/// Where the tables of `--rows differing` are, and what they hold.
Message RanksResult(const CompareReport& report);

/// Step, rank, rows, ops by verdict, the first difference; gives the path.
StatusOr<std::string> WriteRankTable(const std::string& path, const CompareReport& report);

}  // namespace msprobe
