// Which node of the target stands against which of the golden run, by the options of the command.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/message.h"
#include "graph/build/graph_links.h"
#include "graph/tree/builder.h"
#include "match/implementations.h"
#include "match/mapping.h"

namespace msprobe {

struct GraphMatching {
  const Mapping* mapping = nullptr;
  bool fuzzy = false, merged = false;
  Kinship kin;
  std::string output;  // where files may be written meanwhile
};

struct WholeDumps;

/// Pairs the nodes of both graphs; returns what to warn of. `links`: of two frameworks, which items of a pair stand
/// against each other where it is not those at the same place. `whole`: of merged graphs of two frameworks the dumps
/// whose ops the links name.
StatusOr<std::vector<Message>> MatchGraphs(const GraphMatching& how, RankGraph* target, RankGraph* golden,
                                           GraphLinks* links, std::shared_ptr<const WholeDumps>* whole);

}  // namespace msprobe
