// Why the parts of a tensor are not those of the whole, in the words of parallel training.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/message.h"
#include "parity/part_compare.h"

namespace msprobe {

enum class CauseKind : uint8_t {
#define MSP_CAUSE(id, name) id,
#include "parity/causes.def"
#undef MSP_CAUSE
};
/// "partial_sum": for programs.
std::string_view NameOf(CauseKind kind);

struct ParityCause {
  CauseKind kind = CauseKind::kUnexplained;
  Message text;            // a sentence without its subject
  std::vector<int> ranks;  // where it is wrong
  std::string axis;        // "" where no axis is meant
  std::optional<double> factor;
};

/// What sizes a factor may come from.
struct FactorSizes {
  int micro_batches = 1;
  bool gradient = false;        // of a parameter, after its reduction
  bool for_all = false;         // every gradient has this factor
  bool reduced = true;          // it comes from a reduction: no parameter before a step does
  std::set<std::string> alike;  // axes on whose ranks what came into the reduction is the same
};

/// "[0, 2]"
std::string RanksText(const std::vector<int>& ranks);
std::vector<int> RanksOf(const RankParts& parts, const std::vector<size_t>& which);

/// The axis whose groups have these ranks together, "" if there is none.
std::string AxisWith(const std::vector<const ParityRank*>& ranks, const std::vector<int>& together);

ParityCause ExplainFactor(double factor, const RankParts& parts, const std::vector<size_t>& bad,
                          const RankMapping& mapping, const FactorSizes& sizes);
/// Of a module's result or its gradient, or of a parameter whose gradients before the reduction are not known.
ParityCause ExplainParts(const RankParts& parts, const PartsComparison& found, const FactorSizes& sizes);

/// A rank that holds what another one should.
std::optional<ParityCause> ExplainExchange(const RankParts& parts, const PartsComparison& found);

/// A second copy of a weight on another stage of the pipeline, whose part of the gradient is missing here.
std::optional<ParityCause> ExplainTied(const RankParts& parts, const PartsComparison& found, const std::string& other,
                                       const RankParts& copy);

/// The axes on whose ranks what they bring into a reduction is the same.
std::set<std::string> AxesAlike(const RankParts& before);

/// By how much a reduction multiplies what the ranks brought, their mean being 1; without any reference.
std::optional<double> ReducedBy(const RankParts& parts, const RankParts& before);
/// What most reductions of these ranks multiply by.
double UsualReduction(const ParityRun& ranks, const ParityRank& reference, int step);
/// Of a gradient whose inputs differ already: what its reduction does otherwise than `usual` ones of the same run.
std::optional<ParityCause> ExplainApart(const RankParts& parts, const PartsComparison& found, const RankParts& before,
                                        double usual, const FactorSizes& sizes);

/// Of a gradient, from what each rank had before the reduction.
std::optional<ParityCause> ExplainReduction(const RankParts& parts, const PartsComparison& found,
                                            const RankParts& before, const FactorSizes& sizes);

}  // namespace msprobe
