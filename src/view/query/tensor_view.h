// The values of one item of a node, from the file that a tensor dump keeps of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/preview/preview.h"
#include "view/file/served_tree.h"
#include "view/file/vis_file.h"

namespace msprobe::view {

struct ShownTensor {
  std::string item, file;  ///< `file`: relative to the served directory
  std::string dtype;
  std::vector<int64_t> shape;
};

struct TensorDetail {
  ShownTensor target;
  std::optional<ShownTensor> golden;  ///< of the partner
  std::string missing;                ///< why there is none of the partner; "" where none was asked for
  int64_t slice = 0;
  std::vector<int64_t> place;  ///< the leading indices of that slice
  struct Element {
    std::vector<int64_t> place;
    double target = 0, golden = 0, distance = 0;
  };
  std::vector<Element> worst;
  TensorPreview preview;
};

/// Where the tensors of a node lie, as the graph says; `rowid` is the node's. kBadInput when it says nothing.
StatusOr<std::string> TensorDirectory(const VisFile& file, int64_t step, int64_t rank, bool target, int64_t rowid);

/// A file of a dump below `tree`: `directory` is what the graph says, `data_name` what the item says. kBadInput for
/// what lies outside, or is not there.
StatusOr<std::string> TensorPath(const ServedTree& tree, const std::string& directory, std::string_view data_name);

/// Reads one tensor, or two to be compared; paths as TensorPath() gives them, "" for none. Waits while another preview
/// is made: they need the whole machine.
StatusOr<TensorDetail> LoadPreview(const ServedTree& tree, const std::string& target, const std::string& golden,
                                   std::string_view dtype, std::string_view golden_dtype, int64_t slice);

/// `digits` of the cells of pictures.
std::string ToJson(const TensorDetail& detail, int digits = 9);

}  // namespace msprobe::view
