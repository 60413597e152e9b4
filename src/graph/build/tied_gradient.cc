#include "graph/build/tied_gradient.h"

#include "graph/node/item_fields.h"
#include "ops/op_name.h"
#include "parallel/merge_data.h"
#include "parallel/merge_fit.h"

namespace msprobe {
namespace {

/// The lone gradients of one side against what the other side has whole.
class TiedSide {
 public:
  TiedSide(const LoneSide& side, CompareMode mode) : side_(side), mode_(mode) {}

  /// Marks those of `own` that a lone gradient of call `number` completes to what `whole` has.
  Status Fit(std::string_view number, const OpDiff& op, const std::vector<ItemView>& whole, size_t whole_used,
             std::vector<ItemView>* own, size_t own_used) {
    for (const uint32_t index : side_.gradients) {
      const Node& node = side_.rank.graph.nodes[index];
      if (ParseOpName(node.name).number != number) continue;
      MSP_RETURN_IF_ERROR(Read(index));
      for (size_t i = 0; i < own_used; ++i) {
        for (size_t k = 0; k < whole_used; ++k) {
          if (whole[k].suffix == (*own)[i].suffix && Completes(op, (*own)[i], whole[k])) (*own)[i].other_part = true;
        }
      }
    }
    return OkStatus();
  }

 private:
  Status Read(uint32_t index) {
    const RankGraph& rank = side_.rank;
    const Node& node = rank.graph.nodes[index];
    used_ = 0;
    if (rank.merged) {
      MSP_RETURN_IF_ERROR(rank.merged->Read(rank, index, &doc_, &notes_));
    } else if (node.op != kNoIndex) {
      MSP_RETURN_IF_ERROR(rank.files.dump.ParseOp(node.op, &doc_));
    } else {
      return OkStatus();
    }
    if (doc_.IsObject()) DescribeNode(node.name, doc_, mode_, &scratch_, &items_, &used_);
    return OkStatus();
  }

  bool Completes(const OpDiff& op, const ItemView& own, const ItemView& whole) const {
    for (size_t i = 0; i < used_; ++i) {
      if (items_[i].shape == own.shape && AreSummands(op, own, items_[i], whole)) return true;
    }
    return false;
  }

  const LoneSide& side_;
  const CompareMode mode_;
  JsonDoc doc_;
  MergeNotes notes_;
  std::vector<Item> scratch_;
  std::vector<ItemView> items_;
  size_t used_ = 0;
};

}  // namespace

std::vector<uint32_t> LoneGradients(const NodeGraph& graph) {
  std::vector<uint32_t> out;
  for (const uint32_t id : graph.order) {
    const Node& node = graph.nodes[id];
    if (node.match == kNoIndex && ParseOpName(node.name).direction == OpDirection::kParameterGrad) out.push_back(id);
  }
  return out;
}

Status FitTiedGradients(const LoneSide& target, const LoneSide& golden, CompareMode mode, OpDiff* op) {
  const NameParts name = ParseOpName(op->op);
  if (name.direction != OpDirection::kParameterGrad) return OkStatus();
  MSP_RETURN_IF_ERROR(
      TiedSide(target, mode).Fit(name.number, *op, op->golden, op->golden_used, &op->target, op->rows_used));
  return TiedSide(golden, mode).Fit(name.number, *op, op->target, op->rows_used, &op->golden, op->golden_used);
}

}  // namespace msprobe
