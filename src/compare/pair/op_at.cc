#include "compare/pair/op_at.h"

#include <unordered_map>
#include <unordered_set>

#include "compare/pair/fused_op.h"
#include "compare/pair/joined_op.h"
#include "compare/values/described_op.h"

namespace msprobe {
namespace {

/// Golden ops that one op of the target needs, each described once.
class GoldenOps {
 public:
  GoldenOps(const LinkedDumps& of, OpDiff* out) : of_(of), out_(out) {}

  /// The items of golden op `index`, in table order.
  StatusOr<const DescribedOp*> Items(uint32_t index) {
    const auto [it, fresh] = ops_.try_emplace(index);
    DescribedOp* op = &it->second;
    if (!fresh) return op;
    if (out_->docs.size() < ops_.size()) out_->docs.push_back(std::make_unique<JsonDoc>());
    JsonDoc* doc = out_->docs[ops_.size() - 1].get();
    MSP_RETURN_IF_ERROR(of_.golden.ParseOp(index, doc));
    size_t count = 0;
    DescribeOp(of_.golden.ops().NameAt(index), *doc, of_.mode, &out_->scratch, &op->items, &count);
    for (size_t i = 0; i < count; ++i) op->at.emplace(op->items[i].suffix, i);
    return op;
  }

 private:
  const LinkedDumps& of_;
  OpDiff* out_;
  std::unordered_map<uint32_t, DescribedOp> ops_;  // nodes stay where they are
};

}  // namespace

Status GatherPartners(const LinkedDumps& of, const OpLinks& links, OpDiff* out) {
  GoldenOps ops(of, out);
  out->golden.clear();
  std::unordered_set<std::string_view> named;
  for (const ItemLink& link : links.links) {
    named.insert(link.target);
    if (link.golden_op == kNoOp) continue;
    MSP_ASSIGN_OR_RETURN(const DescribedOp* op, ops.Items(link.golden_op));
    const ItemView* item = op->Find(link.golden);
    if (!item) continue;
    out->golden.push_back(*item);
    out->golden.back().suffix = link.target;
  }
  if (links.others != kNoOp) {
    MSP_ASSIGN_OR_RETURN(const DescribedOp* op, ops.Items(links.others));
    for (const ItemView& item : op->items) {
      if (!named.count(item.suffix)) out->golden.push_back(item);
    }
  }
  out->golden_used = out->golden.size();
  return OkStatus();
}

Status DiffOpAt(const DumpPair& pair, size_t index, JsonDoc* target, JsonDoc* golden, OpDiff* out) {
  if (pair.plan.fused) return DiffFusedOp(pair, index, out);
  const LinkedDumps dumps{*pair.target, *pair.golden, pair.options.mode};
  const auto links = pair.plan.links.find(static_cast<uint32_t>(index));
  if (links != pair.plan.links.end() && !links->second.joined.empty()) {
    MSP_RETURN_IF_ERROR(DescribeJoined(dumps, index, links->second, out));
    DiffItems(pair.options, out);
    return OkStatus();
  }
  MSP_RETURN_IF_ERROR(pair.target->ParseOp(index, target));
  const std::string_view name = pair.target->ops().NameAt(index);
  if (links != pair.plan.links.end()) {
    out->op = name;
    out->golden_op = {};
    out->matched = pair.plan.golden_of[index] != kNoOp;
    DescribeOp(name, *target, pair.options.mode, &out->scratch, &out->target, &out->rows_used);
    MSP_RETURN_IF_ERROR(GatherPartners(dumps, links->second, out));
    if (const TensorSource* tensors = pair.options.tensors) {
      out->valid.target = tensors->ValidLengthOf(name, out->target, out->rows_used, false);
    }
    DiffItems(pair.options, out);
    return OkStatus();
  }
  const uint32_t partner = pair.plan.golden_of[index];
  if (partner != kNoOp) MSP_RETURN_IF_ERROR(pair.golden->ParseOp(partner, golden));
  DiffOps(name, *target, partner == kNoOp ? std::string_view() : pair.golden->ops().NameAt(partner),
          partner == kNoOp ? nullptr : golden, pair.options, out);
  return OkStatus();
}

Status DiffOpWith(const DumpPair& pair, size_t index, uint32_t partner, JsonDoc* target, JsonDoc* golden, OpDiff* out) {
  if (partner == kNoOp || partner == pair.plan.golden_of[index]) return DiffOpAt(pair, index, target, golden, out);
  MSP_RETURN_IF_ERROR(pair.target->ParseOp(index, target));
  MSP_RETURN_IF_ERROR(pair.golden->ParseOp(partner, golden));
  DiffOps(pair.target->ops().NameAt(index), *target, pair.golden->ops().NameAt(partner), golden, pair.options, out);
  return OkStatus();
}

}  // namespace msprobe
