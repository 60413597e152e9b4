// The golden band: how far apart runs of the same training are, as a bound for another one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "curves/curve.h"
#include "curves/difference.h"

namespace msprobe {

enum class BandConstruction : uint8_t {
  kTwoRuns,   ///< 2 times the largest difference of the two at any step: of one pair, 1.5 covers too few fresh runs
  kWholeRun,  ///< three and four runs: 1.5 times the largest difference of any two of them at any step
  kWindow,    ///< five runs and more: 1.5 times the largest one within 20 points of each step
};
std::string_view BandConstructionText(BandConstruction c);

inline constexpr double kBandFactor = 1.5, kBandFactorOfTwo = 2;
inline constexpr size_t kBandWindow = 20, kRunsForWindow = 5;

struct GoldenBand {
  BandConstruction construction = BandConstruction::kWholeRun;
  size_t runs = 0;
  std::vector<int64_t> steps;       // that all the runs have
  std::vector<double> half_widths;  // the difference to the first run may be that large
  /// Of the runs, each left out in turn: how many lie wholly in the band of the others, and the share of steps. None
  /// for two runs.
  std::optional<size_t> runs_covered;
  double steps_covered = 0;

  /// All runs are equal at all steps: they are deterministic, and say nothing about what another device may do.
  bool IsEmpty() const;
  /// At a step; none where the runs have none.
  std::optional<double> At(int64_t step) const;
};

/// Two curves or more of the same training. kBadInput where they have no step in common.
StatusOr<GoldenBand> MakeBand(std::span<const Curve* const> golden);

struct BandCheck {
  size_t compared = 0, outside = 0;
  std::optional<int64_t> first_outside;
  double worst_ratio = 0;  // |difference| / half-width
};
BandCheck CheckBand(const GoldenBand& band, const CurvePair& pair);

}  // namespace msprobe
