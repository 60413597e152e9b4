// Which node of the target stands against which of the golden run, by the options of the command.
#pragma once

#include <string>
#include <vector>

#include "graph/tree/builder.h"
#include "match/mapping.h"

namespace msprobe {

struct GraphMatching {
  const Mapping* mapping = nullptr;
  bool fuzzy = false, merged = false;
  bool cross = false;  // the two runs are of different frameworks: names alone say little
};

/// Pairs the nodes of both graphs; returns what to warn of.
StatusOr<std::vector<std::string>> MatchGraphs(const GraphMatching& how, RankGraph* target, RankGraph* golden);

}  // namespace msprobe
