// Two packs compared: the sheets of result.xlsx, with the names and columns of mindstudio-probe.
#pragma once

#include <string>
#include <vector>

#include "checks/pack.h"
#include "sheet/workbook.h"

namespace msprobe {

enum class PackVerdict : uint8_t { kPass, kWarning, kError };
std::string_view NameOf(PackVerdict verdict);

struct PackPart {
  Sheet sheet;
  PackVerdict verdict = PackVerdict::kPass;
};

/// The parts that both packs have, in the order of the workbook.
std::vector<PackPart> ComparePacks(const Pack& bench, const Pack& cmp);

/// The sheet "summary" of them; `truths`: True and False as 8.x has them instead of pass, warning and error.
Sheet SummarySheet(const std::vector<PackPart>& parts, bool truths);

// Its parts, each in a file of its own.
PackPart CompareEnvironment(const std::vector<Setting>& bench, const std::vector<Setting>& cmp);
PackPart CompareHyperParameters(const std::map<std::string, HyperParameters>& bench,
                                const std::map<std::string, HyperParameters>& cmp);
PackPart CompareRandomCalls(const Pack& bench, const Pack& cmp);

}  // namespace msprobe
