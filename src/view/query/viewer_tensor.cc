// The questions about the values of tensors.
#include <fmt/core.h>

#include <utility>

#include "base/text.h"
#include "view/query/query_caches.h"
#include "view/query/tensor_view.h"
#include "view/query/viewer.h"

namespace msprobe::view {
namespace {

/// The item's row of a node; null when there is none.
const ViewRow* FindRow(const NodeRecord& record, std::string_view item) {
  for (const auto* rows : {&record.inputs, &record.outputs}) {
    for (const ViewRow& row : *rows) {
      if (row.name == item) return &row;
    }
  }
  return nullptr;
}

std::string_view ValueOf(const ViewRow& row, std::string_view key) {
  for (const auto& [name, value] : row.values) {
    if (name == key) return value;
  }
  return {};
}

struct Source {
  std::string path, dtype;
};

StatusOr<Source> SourceOf(const QueryContext& held, const GraphAddress& key, Side side, uint32_t node,
                          std::string_view item, const ServedTree& tree) {
  const int64_t rowid = held.tree(side)[node].rowid;
  MSP_ASSIGN_OR_RETURN(const NodeRecord record, held.file->LoadRecord(rowid));
  const ViewRow* row = FindRow(record, item);
  if (!row) return BadInput(fmt::format("{} has no item {}: use a name that the node lists", key.file, OneLine(item)));
  const std::string_view data_name = ValueOf(*row, "data_name");
  if (data_name.empty() || data_name == "-1" || data_name == "null") {
    return BadInput(fmt::format("no tensor of {} was saved: dump with task tensor", OneLine(item)));
  }
  MSP_ASSIGN_OR_RETURN(const std::string directory,
                       TensorDirectory(*held.file, key.step, key.rank, side == Side::kTarget, rowid));
  MSP_ASSIGN_OR_RETURN(std::string path, TensorPath(tree, directory, data_name));
  return Source{std::move(path), std::string(ValueOf(*row, "dtype"))};
}

}  // namespace

StatusOr<TensorDetail> Viewer::Tensor(const GraphAddress& key, Side side, const TensorQuery& query) {
  if (root().empty()) {
    return BadInput("only a file is served, and no tensors beside it: serve the directory that holds graph and dump");
  }
  const ServedTree tree(root());
  MSP_ASSIGN_OR_RETURN(const QueryContext held, cache_->Hold(key));
  MSP_ASSIGN_OR_RETURN(const uint32_t node, held.Find(key, side, query.node));
  MSP_ASSIGN_OR_RETURN(const Source own, SourceOf(held, key, side, node, query.item, tree));
  Source paired;
  std::string missing;
  const uint32_t partner = held.tree(side)[node].partner;
  if (!query.partner_item.empty() && partner != kNoNode) {
    const Side other = side == Side::kTarget ? Side::kGolden : Side::kTarget;
    auto found = SourceOf(held, key, other, partner, query.partner_item, tree);
    if (found.ok()) {
      paired = *std::move(found);
    } else {
      missing = found.status().message();
    }
  }
  MSP_ASSIGN_OR_RETURN(TensorDetail out,
                       LoadPreview(tree, own.path, paired.path, own.dtype, paired.dtype, query.slice));
  out.target.item = query.item;
  if (out.golden) out.golden->item = query.partner_item;
  if (!missing.empty()) out.missing = std::move(missing);
  return out;
}

}  // namespace msprobe::view
