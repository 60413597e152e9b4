// Which nodes of the other side could be the partner of one that has none: by name, by what it stands in, by shapes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "view/file/graph_sides.h"
#include "view/file/vis_file.h"

namespace msprobe::view {

struct PartnerGuess {
  uint32_t node = kNoNode;
  double name = 0;                  ///< how alike the names are, 0 to 1
  bool same_place = false;          ///< what they stand in are partners
  std::optional<bool> same_shapes;  ///< of inputs and outputs; nothing where one of them has none
};

/// How alike two names are: their parts between dots in order, without the numbers of calls.
double NameLikeness(std::string_view a, std::string_view b);

/// The best `most` for a node of the target (or of the golden side), best first: nodes without a partner, of its type
/// and direction. Shapes are read of the few that have the best names.
StatusOr<std::vector<PartnerGuess>> GuessPartners(const VisFile& file, const GraphSides& graph, bool target,
                                                  uint32_t node, size_t most);

}  // namespace msprobe::view
