// For tests: a step on some ranks and on a reference that is made up.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "parity/judge.h"

namespace msprobe::made {

using Values = std::vector<float>;

/// A step that is made up: tensors are kept as long as the runs.
class Made {
 public:
  ParityRuns runs;
  int step = 0;  // that tensors are added to

  Made(int ranks, std::map<std::string, std::vector<std::vector<int>>> axes) {
    for (int r = 0; r < ranks; ++r) {
      ParityRank& rank = runs.ranks.emplace_back();
      rank.rank = r, rank.world = ranks, rank.steps = 1;
      for (const auto& [axis, groups] : axes) {
        for (const auto& group : groups) {
          if (std::find(group.begin(), group.end(), r) != group.end()) rank.axes[axis] = group;
        }
      }
    }
    runs.reference.emplace_back().steps = 1;
    // Something that is the same everywhere.
    const Values weight = Noise(12);
    for (ParityRank& rank : runs.ranks) Add(&rank, "parameter", "w", {3, 4}, weight);
    Add(&runs.reference.front(), "parameter", "w", {3, 4}, weight);
  }

  static Values Noise(size_t count, unsigned seed = 1) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    Values out(count);
    for (float& value : out) value = normal(random);
    return out;
  }

  void Add(ParityRank* rank, const std::string& phase, const std::string& name, std::vector<int64_t> shape,
           Values values) {
    kept_.push_back(std::move(values));
    ParityEntry entry;
    entry.name = name, entry.dtype = DType::kFloat32, entry.shape = std::move(shape);
    entry.data = reinterpret_cast<const char*>(kept_.back().data());
    ParityPhase& to = rank->phases[{step, phase}];
    to.by_name.emplace(name, to.entries.size());
    to.entries.push_back(std::move(entry));
  }

  ParityEntry& Entry(int rank, const std::string& phase) {
    return runs.ranks[static_cast<size_t>(rank)].phases[{step, phase}].entries.back();
  }
  ParityRank& rank(int number) { return runs.ranks[static_cast<size_t>(number)]; }
  ParityRank& reference() { return runs.reference.front(); }

  ParityFinding First() {
    const ParityResult result = JudgeParity(runs);
    return result.findings.empty() ? ParityFinding{} : result.findings.front();
  }

 private:
  std::deque<Values> kept_;
};

inline Values Times(Values values, float factor) {
  for (float& value : values) value *= factor;
  return values;
}

inline Values Sum(Values a, const Values& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

inline const std::map<std::string, std::vector<std::vector<int>>> kTwoByTwo{{"tp", {{0, 1}, {2, 3}}},
                                                                            {"dp", {{0, 2}, {1, 3}}}};

}  // namespace msprobe::made
