// Dtypes of the tensors that the nodes of a graph take, hold and give.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "view/file/tree.h"
#include "view/file/vis_file.h"

namespace msprobe::view {

/// One entry a node: a bit for each DType, 0 where none is known.
using NodeDTypes = std::vector<uint32_t>;

/// Those of one side of a graph, read once.
class DTypesOfSide {
 public:
  StatusOr<std::shared_ptr<const NodeDTypes>> Of(const VisFile& file, const Tree& tree);

 private:
  std::mutex mutex_;
  std::shared_ptr<const NodeDTypes> known_;
};

/// Those of a cell of msprobe_data, packed or not (graph/db/vis_schema.h).
uint32_t DTypesInCell(std::string_view text);

}  // namespace msprobe::view
