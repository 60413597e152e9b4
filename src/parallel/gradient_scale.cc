#include "parallel/gradient_scale.h"

#include <cmath>
#include <optional>
#include <vector>

#include "compare/values/item_view.h"
#include "ops/op_name.h"
#include "parallel/merge_data.h"

namespace msprobe {
namespace {

constexpr size_t kLooked = 64;        // calls: those next to the loss come first
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
      if (items_[i].suffix == suffix && norm.IsNumber() && norm.AsDouble() > 0) return norm.AsDouble();
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
  size_t calls = 0, tensors = 0, scaled = 0;
  for (const uint32_t id : target.graph.order) {
    const Node& node = target.graph.nodes[id];
    if (node.type != NodeType::kModule || node.op == kNoIndex || node.match == kNoIndex) continue;
    if (ParseOpName(node.name).direction != OpDirection::kBackward) continue;
    if (calls++ == kLooked) break;
    MSP_RETURN_IF_ERROR(left.Read(target, id));
    MSP_RETURN_IF_ERROR(right.Read(golden, node.match));
    for (size_t i = 0; i < left.size(); ++i) {
      const auto a = left.At(left.suffix(i)), b = right.At(left.suffix(i));
      if (!a || !b) continue;
      ++tensors;
      if (std::fabs(*a / *b / ratio - 1) <= kNearRatio) ++scaled;
      if (tensors <= kFirst && scaled < tensors) return 1.0;
    }
  }
  return tensors >= kFirst && static_cast<double>(scaled) >= kEnough * static_cast<double>(tensors) ? ratio : 1.0;
}

}  // namespace msprobe
