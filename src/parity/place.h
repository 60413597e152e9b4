// Which part of a whole tensor each rank holds: declared, or found by the sizes and the values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "parity/record.h"

namespace msprobe {

/// How a tensor lies over one axis of parallelism.
enum class AxisRole : uint8_t {
  kReplica,
  kSplit,   ///< one part behind the other
  kZigZag,  ///< part r of n has the chunks r and 2n - 1 - r: causal context parallelism
  kRows,    ///< rows of a batch that were joined with another dimension: every n-th block of rows
  kHalves,  ///< each part has its piece of two halves: gate and up
  kSum,     ///< every rank holds a summand
  kMean,    ///< every rank has its own, of its rows, and the whole is their mean
};

struct AxisPlace {
  std::string axis;
  AxisRole role = AxisRole::kReplica;
  int dim = 0;
  int64_t block = 0;  // rows in a block
};

/// What a rank holds: along each dimension these indices of the whole, and of that, in C order, a range.
struct RankPlace {
  std::vector<std::vector<int64_t>> indices;
  bool operator==(const RankPlace& o) const { return indices == o.indices; }
};

/// A tensor on the ranks that have it.
struct RankParts {
  std::vector<const ParityRank*> ranks;
  std::vector<const ParityEntry*> entries;
  std::vector<std::vector<double>> values;  // of each
  size_t size() const { return ranks.size(); }
  bool declared() const;
};

struct RankMapping {
  std::vector<AxisPlace> axes;    // those of more than one rank here
  std::vector<RankPlace> places;  // of each part
  std::string Text() const;       // "s b h[tp]" without names: "split tp along 2"
  bool IsSum() const;
  int cost() const;  // the more it is unlikely
  std::vector<std::string> Sums() const;
};

/// The axes in which these ranks differ, with the coordinate of each rank.
std::map<std::string, std::vector<int>> CoordinatesOf(const std::vector<const ParityRank*>& ranks);

/// The mappings that the sizes allow; the most likely first. Of declared parts there is one. Empty: nothing fits.
std::vector<RankMapping> MappingsOf(const RankParts& parts, const std::vector<int64_t>& whole);

/// Elements of a whole tensor that a rank holds.
std::vector<double> Taken(const std::vector<double>& whole, const std::vector<int64_t>& shape, const RankPlace& place);

/// Parts put together; elements that no rank has are NaN. Sums are added up over `axes`.
std::vector<double> WholeOf(const RankParts& parts, const RankMapping& mapping, const std::vector<int64_t>& shape);

}  // namespace msprobe
