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

/// A law that was looked at in part, or not at all, on some ranks.
struct UnseenLaw {
  std::string law, why;
  bool in_part = false;
  std::set<size_t> ranks;
};

/// What a rank's laws.json says of laws.
struct RankLaws {
  std::vector<BrokenLaw> broken;
  std::vector<UnseenLaw> unseen;
  size_t held = 0;  // laws of this rank that were looked at as a whole and are not broken
};

/// Appends what the laws.json of a rank has; nothing where there is none. kBadInput when it is another file.
Status ReadLaws(const std::string& path, size_t rank, RankLaws* laws);

/// By step; what several ranks say alike becomes one. `ranks`: of the run.
std::vector<BrokenLaw> TogetherOf(std::vector<BrokenLaw> laws, size_t ranks);

}  // namespace msprobe
