// What the laws of a training found, as laws.json of each rank says it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"

namespace msprobe {

/// A law that broke at a step, of all ranks and parameters of which the same is said.
struct BrokenLaw {
  std::string law, text;
  int64_t step = 0;
  std::vector<std::string> names;  // parameters or modules; empty: none in particular
  std::set<size_t> ranks;          // that say so
  std::optional<int64_t> culprit;  // the guilty rank
  bool undecided = false;          // ranks differ, and nobody can say which is wrong
};

/// Appends what the laws.json of a rank has; nothing where there is none. kBadInput when it is another file.
Status ReadBrokenLaws(const std::string& path, size_t rank, std::vector<BrokenLaw>* laws);

/// By step; what several ranks say alike becomes one. `ranks`: of the run.
std::vector<BrokenLaw> TogetherOf(std::vector<BrokenLaw> laws, size_t ranks);

}  // namespace msprobe
