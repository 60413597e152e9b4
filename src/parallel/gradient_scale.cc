#include "parallel/gradient_scale.h"

#include <cmath>
#include <optional>
#include <vector>

#include "compare/values/item_view.h"
#include "graph/tree/flat_structure.h"
#include "ops/op_name.h"
#include "parallel/merge_data.h"

namespace msprobe {
namespace {

constexpr size_t kLooked = 64;        // backward calls: those next to the loss come first
constexpr size_t kFirst = 3;          // tensors that all have the ratio
constexpr double kEnough = 0.9;       // of all tensors: a fault further down has another ratio
constexpr double kNearRatio = 0.005;  // far more than rounding, far less than one more rank

/// The Norms of what a backward call was given and gave.
class CallNorms {
 public:
  Status Read(const RankGraph& rank, uint32_t node) {
    used_ = 0;
    MSP_RETURN_IF_ERROR(rank.merged->Read(rank, node, &doc_, &notes_));
    if (doc_.IsObject())
      DescribeOp(rank.graph.nodes[node].name, doc_, CompareMode::kStatistics, &scratch_, &items_, &used_);
    return OkStatus();
  }
  size_t size() const { return used_; }
  std::string_view suffix(size_t i) const { return items_[i].suffix; }
  std::optional<double> At(std::string_view suffix) const {
    for (size_t i = 0; i < used_; ++i) {
      const StatValue& norm = items_[i].stats[kNorm];
      const bool single = items_[i].shape == "[]" || items_[i].shape == "[1]";  // the loss is of each rank's tokens
      if (items_[i].suffix == suffix && !single && norm.IsNumber() && norm.AsDouble() > 0) return norm.AsDouble();
    }
    return std::nullopt;
  }

 private:
  JsonDoc doc_;
  MergeNotes notes_;
  std::vector<Item> scratch_;
  std::vector<ItemView> items_;
  size_t used_ = 0;
};

}  // namespace

StatusOr<double> FindGradientScale(double ratio, const RankGraph& target, const RankGraph& golden) {
  if (ratio == 1 || !target.merged || !golden.merged) return 1.0;
  CallNorms left, right;
  const bool calls = IsOneModuleOfCalls(target.files.construct);
  size_t looked = 0, tensors = 0, scaled = 0;
  for (const uint32_t id : target.graph.order) {
    const Node& node = target.graph.nodes[id];
    const bool call = calls && node.type == NodeType::kApi && node.parent != 0;
    if ((node.type != NodeType::kModule && !call) || node.op == kNoIndex || node.match == kNoIndex) continue;
    if (ParseOpName(node.name).direction != OpDirection::kBackward) continue;
    if (looked++ == kLooked) break;
    MSP_RETURN_IF_ERROR(left.Read(target, id));
    MSP_RETURN_IF_ERROR(right.Read(golden, node.match));
    for (size_t i = 0; i < left.size(); ++i) {
      const auto a = left.At(left.suffix(i)), b = right.At(left.suffix(i));
      if (!a || !b) continue;
      ++tensors;
      if (std::fabs(*a / *b / ratio - 1) <= kNearRatio) ++scaled;
      if (!calls && tensors <= kFirst && scaled < tensors) return 1.0;  // calls begin with what the loss is made of
    }
  }
  return tensors >= kFirst && static_cast<double>(scaled) >= kEnough * static_cast<double>(tensors) ? ratio : 1.0;
}

}  // namespace msprobe
