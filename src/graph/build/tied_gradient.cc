#include "graph/build/tied_gradient.h"

#include "base/text.h"
#include "graph/node/item_fields.h"
#include "graph/tree/flat_structure.h"
#include "ops/op_name.h"
#include "parallel/merge_data.h"
#include "parallel/merge_fit.h"

namespace msprobe {
namespace {

/// A call that adds to memory, as gradients are added up. Calls that no module tells apart are all that say so.
bool AddsUp(const RankGraph& rank, std::string_view name) {
  if (!IsOneModuleOfCalls(rank.files.construct)) return false;
  const std::string_view api = WithoutRankSuffix(ApiOf(name));
  return (api == "add_" || api == "__iadd__") && ParseOpName(name).direction == OpDirection::kForward;
}

bool IsGradient(std::string_view name) { return ParseOpName(name).direction == OpDirection::kParameterGrad; }

/// The lone gradients of one side against what the other side has whole.
class TiedSide {
 public:
  TiedSide(const LoneSide& side, CompareMode mode) : side_(side), mode_(mode) {}

  /// Marks those of `own` that a lone gradient completes to what `whole` has: one of the same call of the module, or
  /// any of those that calls add up.
  Status Fit(const OpDiff& op, const std::vector<ItemView>& whole, size_t whole_used, std::vector<ItemView>* own,
             size_t own_used) {
    const NameParts name = ParseOpName(op.op);
    if (!AnyDiffers(whole, whole_used, *own, own_used)) return OkStatus();
    for (const uint32_t index : side_.gradients) {
      const Node& node = side_.rank.graph.nodes[index];
      if (IsGradient(node.name) != IsGradient(op.op)) continue;
      if (IsGradient(node.name) && ParseOpName(node.name).number != name.number) continue;
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
  static bool AnyDiffers(const std::vector<ItemView>& whole, size_t whole_used, const std::vector<ItemView>& own,
                         size_t own_used) {
    for (size_t i = 0; i < own_used; ++i) {
      for (size_t k = 0; k < whole_used; ++k) {
        if (whole[k].suffix != own[i].suffix || !own[i].tensor || !whole[k].tensor) continue;
        if (!SameStats(StatsOf(own[i]), StatsOf(whole[k]))) return true;
      }
    }
    return false;
  }

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

std::vector<uint32_t> LoneGradients(const RankGraph& rank) {
  std::vector<uint32_t> out;
  for (const uint32_t id : rank.graph.order) {
    const Node& node = rank.graph.nodes[id];
    if (node.match != kNoIndex) continue;
    const bool call = rank.merged && node.parent != kNoIndex && rank.graph.nodes[node.parent].name == kAllCallsForward;
    if (IsGradient(node.name) || (call && AddsUp(rank, node.name))) out.push_back(id);
  }
  return out;
}

Status FitTiedGradients(const LoneSide& target, const LoneSide& golden, CompareMode mode, OpDiff* op) {
  if (!IsGradient(op->op) && !AddsUp(target.rank, op->op)) return OkStatus();
  MSP_RETURN_IF_ERROR(TiedSide(target, mode).Fit(*op, op->golden, op->golden_used, &op->target, op->rows_used));
  return TiedSide(golden, mode).Fit(*op, op->target, op->rows_used, &op->golden, op->golden_used);
}

}  // namespace msprobe
