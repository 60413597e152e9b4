// api_precision_compare: the figures of one device against those of another.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lab/standards/standard.h"
#include "lab/standards/status.h"

namespace msprobe {

/// The columns of accuracy_checking_details that are read, in the order of the file.
enum class DetailsColumn : uint8_t {
  kName,
  kDtype,
  kShape,
  kThousandth,
  kErrorRate,
  kBalance,
  kRmse,
  kSmallValue,
  kMaxRelative,
  kMeanRelative,
  kInfNan,
  kRelativeRate,
  kAbsoluteRate,
  kMeanUlp,
  kUlpShare,
  kMessage,
};
inline constexpr size_t kDetailsColumns = 16;
std::string_view DetailsColumnName(DetailsColumn c);

struct DetailsRow {
  std::array<std::string, kDetailsColumns> cells;
  const std::string& operator[](DetailsColumn c) const { return cells[static_cast<size_t>(c)]; }
};

/// All columns of accuracy_checking_details_*.csv.
const std::vector<std::string>& CheckColumns();
/// Those of api_precision_compare_details_*.csv and of both result files.
const std::vector<std::string>& RatioColumns();
const std::vector<std::string>& ApiResultColumns();

/// A row of api_precision_compare_details_*.csv.
struct RatioRow {
  std::vector<std::string> cells;  // as RatioColumns()
  LabStatus status = LabStatus::kNone;
  std::string failed;  // why the figures cannot be judged; the op counts as skipped
};

/// float64 and complex outputs, those without elements and those that are not there are skipped.
bool IsOutsideStandards(std::string_view dtype);
/// `api` as "matmul" or "linalg.inv".
RatioRow CompareRatios(const DetailsRow& npu, const DetailsRow& gpu, std::string_view api, StandardRelease release);

}  // namespace msprobe
