// What the difference of two curves means, by the rules of the alignment guide of MindFormers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/message.h"
#include "curves/band.h"
#include "curves/curve.h"
#include "curves/difference.h"
#include "judgement/judgement.h"

namespace msprobe {

enum class CurveVerdict : uint8_t {
  kEqual,           ///< to the last digit
  kReasonable,      ///< within the golden band, and round zero
  kWithinBand,      ///< within the golden band; too few independent steps to say more
  kOneSided,        ///< within the golden band, on one side of zero
  kFromFirstStep,   ///< the first loss is outside of the band already
  kOutsideBand,     ///< leaves the band
  kLateDifference,  ///< fits early, and leaves the band late and slowly
  kDiverges,        ///< jumps away, or is not finite
  kNormDiffers,     ///< the loss does not show it, the norm of the gradient does
  kRateDiffers,     ///< the curves do not show it, the learning rate is another
  kEvalDiffers,     ///< the curves of the training do not show it, the losses of its evaluations do
  kNotFinite,       ///< both are NaN or infinite alike: what agrees there says nothing
  kNoBand,          ///< there is no band to judge by
};
/// "equal", "reasonable", "within_band", ...: for programs.
std::string_view CurveVerdictName(CurveVerdict v);
/// A sentence.
std::string_view CurveVerdictText(CurveVerdict v);
inline bool IsFine(CurveVerdict v) { return v <= CurveVerdict::kWithinBand; }

enum class RuleVerdict : uint8_t { kPass, kWarn, kFail, kUnknown };
std::string_view RuleVerdictName(RuleVerdict v);

struct CurveRule {
  std::string_view id;  // "benchmark_error"
  std::string_view rule;
  RuleVerdict verdict;
  Message text;                      // what was found
  std::optional<int64_t> step = {};  // where it begins to fail
};

/// A quantity that both runs have.
struct ComparedCurve {
  CurveKind kind = CurveKind::kLoss;
  CurvePair pair;
  CurveDifference difference;
  std::optional<GoldenBand> band;
  BandCheck check;
};

struct CurveJudgement {
  CurveVerdict verdict = CurveVerdict::kNoBand;
  std::optional<int64_t> step;  // where they part: the first step at which a rule fails
  std::vector<CurveRule> rules;
};

/// What failed, first what the verdict is.
std::vector<Judgement> JudgementsOf(const CurveJudgement& judgement);

/// Of what both runs have; the loss decides where it is there, else the norm of the gradient; but no verdict is fine
/// where another quantity fails its rule.
CurveJudgement JudgeCurves(const std::vector<ComparedCurve>& curves);

}  // namespace msprobe
