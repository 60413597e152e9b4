#include "view/values/node_dtypes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "graph/db/vis_schema.h"
#include "tensor/kernels/dtype.h"
#include "view/file/file_rows.h"

namespace msprobe::view {
namespace {

uint32_t BitOf(DType type) { return type == DType::kUnknown ? 0 : uint32_t{1} << static_cast<unsigned>(type); }

/// Letters, digits, "_" and "." from `at` on.
std::string_view WordAt(std::string_view text, size_t at) {
  size_t end = at;
  const auto part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  while (end < text.size() && part(text[end])) ++end;
  return text.substr(at, end - at);
}

/// A number or a text has its own type as dtype.
uint32_t BitOfRow(std::string_view type, std::string_view dtype) {
  return type == dtype ? 0 : BitOf(ParseDType(dtype));
}

/// Where the cells of nodes are, by the number of the cell.
using NodeCells = std::vector<std::pair<int64_t, uint32_t>>;

StatusOr<NodeDTypes> LoadCompact(const VisFile& file, const Tree& tree) {
  NodeDTypes out(tree.size(), 0);
  NodeCells cells;
  const int64_t first = tree[0].rowid;
  const RowQuery nodes{"msprobe_node", "node", {"data"}, first, Tree::Behind(first, tree.size() - 1)};
  MSP_RETURN_IF_ERROR(ReadRows(file, nodes, [&](const SqlRow& row) {
    const uint32_t i = tree.AtRow(row.id);
    if (i != kNoNode && row.values[0].IsNumber()) cells.emplace_back(row.values[0].integer, i);
    return OkStatus();
  }));
  if (cells.empty()) return out;
  std::sort(cells.begin(), cells.end());
  const RowQuery texts{"msprobe_data", "data", {"input", "output"}, cells.front().first, cells.back().first};
  auto at = cells.begin();
  MSP_RETURN_IF_ERROR(ReadRows(file, texts, [&](const SqlRow& row) {
    while (at != cells.end() && at->first < row.id) ++at;
    if (at == cells.end() || at->first != row.id) return OkStatus();
    uint32_t found = 0;
    for (const SqlValue& value : row.values) found |= DTypesInCell(value.text);
    for (; at != cells.end() && at->first == row.id; ++at) out[at->second] = found;
    return OkStatus();
  }));
  return out;
}

StatusOr<NodeDTypes> LoadPlain(const VisFile& file, const Tree& tree) {
  NodeDTypes out(tree.size(), 0);
  for (uint32_t i = 0; i < tree.size(); ++i) {
    MSP_ASSIGN_OR_RETURN(const NodeRecord record, file.LoadRecord(tree[i].rowid));
    for (const auto* rows : {&record.inputs, &record.outputs}) {
      for (const ViewRow& row : *rows) {
        std::string_view type, dtype;
        for (const auto& [key, value] : row.values) {
          if (key == "type") type = value;
          if (key == "dtype") dtype = value;
        }
        out[i] |= BitOfRow(type, dtype);
      }
    }
  }
  return out;
}

}  // namespace

uint32_t DTypesInCell(std::string_view text) {
  constexpr size_t kMostBefore = 256;  // a type is named right before its dtype
  static const std::string type_key{PackedKey("type")}, dtype_key{PackedKey("dtype")}, tensor_key{kPackTensor};
  uint32_t found = 0;
  // Keys of which the dtype stands right behind, and those of the type before them.
  const std::pair<std::string_view, std::string_view> keys[] = {
      {dtype_key, type_key}, {R"("dtype": ")", R"("type": ")"}, {tensor_key, {}}};
  for (const auto& [key, before] : keys) {
    for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at)) {
      const size_t start = at;
      at += key.size();
      const std::string_view dtype = WordAt(text, at);
      std::string_view type;
      if (!before.empty()) {
        const std::string_view head = text.substr(start - std::min(start, kMostBefore), std::min(start, kMostBefore));
        const size_t named = head.rfind(before);
        if (named != std::string_view::npos) type = WordAt(head, named + before.size());
      }
      found |= BitOfRow(type, dtype);
    }
  }
  return found;
}

StatusOr<std::shared_ptr<const NodeDTypes>> DTypesOfSide::Of(const VisFile& file, const Tree& tree) {
  const std::lock_guard lock(mutex_);
  if (known_) return known_;
  NodeDTypes found;
  if (!tree.empty()) {
    MSP_ASSIGN_OR_RETURN(found, file.compact() ? LoadCompact(file, tree) : LoadPlain(file, tree));
  }
  known_ = std::make_shared<const NodeDTypes>(std::move(found));
  return known_;
}

}  // namespace msprobe::view
