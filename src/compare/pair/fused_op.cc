#include "compare/pair/fused_op.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "compare/values/described_op.h"

namespace msprobe {
namespace {

/// Numbers of the two sides are floats in these tables, as in the older tool's.
void ToFloats(ItemView* item) {
  for (StatValue& v : item->stats) {
    if (v.kind != StatValue::Kind::kInt && v.kind != StatValue::Kind::kUInt) continue;
    v = StatValue::Of(v.AsDouble());
  }
}

StatusOr<DescribedOp> Describe(const DumpFile& dump, uint32_t index, CompareMode mode, OpDiff* out) {
  out->docs.push_back(std::make_unique<JsonDoc>());
  JsonDoc* doc = out->docs.back().get();
  MSP_RETURN_IF_ERROR(dump.ParseOp(index, doc));
  DescribedOp op;
  size_t count = 0;
  DescribeOp(dump.ops().NameAt(index), *doc, mode, &out->scratch, &op.items, &count);
  op.items.resize(count);
  for (size_t i = 0; i < count; ++i) {
    ToFloats(&op.items[i]);
    op.at.emplace(op.items[i].suffix, i);
  }
  return op;
}

StatusOr<std::vector<DescribedOp>> DescribeAll(const DumpFile& dump, const std::vector<uint32_t>& ops, CompareMode mode,
                                               OpDiff* out) {
  std::vector<DescribedOp> all;
  all.reserve(ops.size());
  for (const uint32_t op : ops) {
    MSP_ASSIGN_OR_RETURN(DescribedOp described, Describe(dump, op, mode, out));
    all.push_back(std::move(described));
  }
  return all;
}

/// Greatest or least of what is a number; the text None without any.
StatValue Extreme(const std::vector<const ItemView*>& parts, Stat k) {
  StatValue best;
  for (const ItemView* part : parts) {
    const StatValue& v = part->stats[k];
    if (v.kind != StatValue::Kind::kDouble) continue;
    const bool better = !best.IsNumber() || (k == kMax ? v.d > best.d : v.d < best.d);
    if (better) best = v;
  }
  return best;
}

StatValue JoinedText(const std::vector<const ItemView*>& parts, Stat k, OpDiff* out) {
  std::string text;
  for (const ItemView* part : parts) {
    if (!text.empty()) text += ';';
    part->stats[k].AppendText(&text);
  }
  return StatValue::Of(std::string_view(out->texts.emplace_back(std::move(text))));
}

/// One item made of the same item of several ops.
ItemView Join(const std::vector<const ItemView*>& parts, const std::string& joint, OpDiff* out) {
  ItemView item = *parts.front();
  if (parts.size() == 1) return item;
  std::string dtype, data;
  item.joined = true;
  item.name.clear();
  item.shape.clear();
  for (const ItemView* part : parts) {
    const bool first = part == parts.front();
    item.name.append(first ? "" : joint).append(part->name);
    item.shape.append(first ? "" : ";").append(part->shape);
    dtype.append(first ? "" : ";").append(part->dtype);
    data.append(first ? "" : ";").append(part->data_name);
    if (part->HasData()) item.parts.push_back(part->data_name);
  }
  item.join = item.state == ItemState::kParameter ? JoinAxis::kFirst
              : item.state == ItemState::kOutput  ? JoinAxis::kLast
                                                  : JoinAxis::kFirstOnly;
  item.dtype = out->texts.emplace_back(std::move(dtype));
  item.data_name = out->texts.emplace_back(std::move(data));
  item.stats = {Extreme(parts, kMax), Extreme(parts, kMin), JoinedText(parts, kMean, out),
                JoinedText(parts, kNorm, out)};
  return item;
}

std::vector<const ItemView*> WithSuffix(const std::vector<DescribedOp>& ops, std::string_view suffix) {
  std::vector<const ItemView*> out;
  for (const DescribedOp& op : ops) {
    if (const ItemView* item = op.Find(suffix)) out.push_back(item);
  }
  return out;
}

void Push(std::vector<ItemView>* list, size_t* used, ItemView&& item) {
  if (list->size() <= *used) list->resize(*used + 1);
  (*list)[(*used)++] = std::move(item);
}

ItemView Absent() {
  ItemView item;
  item.suffix = item.name = item.shape = item.checksum = "N/A";
  item.dtype = item.data_name = "N/A";
  for (StatValue& v : item.stats) v = StatValue::Of(kNotAvailableText);
  return item;
}

/// The rows of items that the target op has.
class FusedRows {
 public:
  FusedRows(const DumpPair& pair, uint32_t index, OpDiff* out) : pair_(pair), index_(index), out_(out) {}

  Status Make() {
    const FusedPlan& plan = *pair_.plan.fused;
    const uint32_t group = plan.group_of[index_];
    FusedGroup alone{{index_}, {}};
    const FusedGroup& ops = group == kNoGroup ? alone : plan.groups[group];
    const CompareMode mode = pair_.options.mode;
    MSP_ASSIGN_OR_RETURN(const std::vector<DescribedOp> targets, DescribeAll(*pair_.target, ops.targets, mode, out_));
    MSP_ASSIGN_OR_RETURN(const std::vector<DescribedOp> goldens, DescribeAll(*pair_.golden, ops.goldens, mode, out_));
    const size_t target =
        static_cast<size_t>(std::find(ops.targets.begin(), ops.targets.end(), index_) - ops.targets.begin());
    for (const ItemView& item : targets[target].items) AddItem(item, targets, goldens);
    if (target + 1 == targets.size()) CollectAlone(targets, goldens);
    return OkStatus();
  }

  /// Golden items that no target op of the group has.
  std::vector<ItemView> TakeAlone() { return std::move(alone_); }

 private:
  void AddItem(const ItemView& item, const std::vector<DescribedOp>& targets, const std::vector<DescribedOp>& goldens) {
    const FusedPlan& plan = *pair_.plan.fused;
    const std::vector<const ItemView*> golden_items = WithSuffix(goldens, item.suffix);
    if (golden_items.empty()) return Push(&out_->target, &out_->rows_used, ItemView(item));
    if (!plan.join_targets) {
      Push(&out_->target, &out_->rows_used, ItemView(item));
      return Push(&out_->golden, &out_->golden_used, Join(golden_items, plan.joint, out_));
    }
    const std::vector<const ItemView*> target_items = WithSuffix(targets, item.suffix);
    if (target_items.front() != &item) return;  // shown with the first of them
    for (const ItemView* golden : golden_items) {
      Push(&out_->target, &out_->rows_used, Join(target_items, plan.joint, out_));
      Push(&out_->golden, &out_->golden_used, ItemView(*golden));
    }
  }

  void CollectAlone(const std::vector<DescribedOp>& targets, const std::vector<DescribedOp>& goldens) {
    for (const DescribedOp& op : goldens) {
      for (const ItemView& item : op.items) {
        if (WithSuffix(targets, item.suffix).empty()) alone_.push_back(item);
      }
    }
  }

  const DumpPair& pair_;
  const uint32_t index_;
  OpDiff* out_;
  std::vector<ItemView> alone_;
};

/// A row of a golden item alone, behind the others.
void AddAlone(const DumpPair& pair, ItemView&& item, OpDiff* out) {
  const size_t at = out->rows_used;
  ItemView absent = Absent();
  absent.state = item.state;
  Push(&out->target, &out->rows_used, std::move(absent));
  if (out->rows.size() < out->rows_used) out->rows.resize(out->rows_used);
  if (pair.options.tensors) {
    if (out->tensors.size() < out->rows_used) out->tensors.resize(out->rows_used);
    out->tensors[at] = TensorDiff();
  }
  out->rows[at] = DiffRow();
  out->rows[at].golden = static_cast<int>(out->golden_used);
  out->rows[at].golden_only = true;
  Push(&out->golden, &out->golden_used, std::move(item));
  out->golden_taken.resize(out->golden_used, true);
}

Status AddAlone(const DumpPair& pair, const std::vector<uint32_t>& ops, OpDiff* out) {
  for (const uint32_t op : ops) {
    MSP_ASSIGN_OR_RETURN(DescribedOp described, Describe(*pair.golden, op, pair.options.mode, out));
    for (ItemView& item : described.items) AddAlone(pair, std::move(item), out);
  }
  return OkStatus();
}

/// Brings the rows from `from` on to the front.
void MoveToFront(size_t from, bool tensors, OpDiff* out) {
  const auto rotate = [&](auto* list) {
    std::rotate(list->begin(), list->begin() + static_cast<std::ptrdiff_t>(from),
                list->begin() + static_cast<std::ptrdiff_t>(out->rows_used));
  };
  rotate(&out->target);
  rotate(&out->rows);
  if (tensors) rotate(&out->tensors);
}

}  // namespace

Status DiffFusedOp(const DumpPair& pair, size_t index, OpDiff* out) {
  const FusedPlan& plan = *pair.plan.fused;
  out->op = pair.target->ops().NameAt(index);
  out->golden_op = {};
  out->matched = plan.group_of[index] != kNoGroup;
  out->skipped = plan.skipped[index];
  out->rows_used = out->golden_used = 0;
  out->docs.clear();
  out->texts.clear();
  if (out->skipped) return OkStatus();
  FusedRows rows(pair, static_cast<uint32_t>(index), out);
  MSP_RETURN_IF_ERROR(rows.Make());
  DiffItems(pair.options, out);
  for (ItemView& item : rows.TakeAlone()) AddAlone(pair, std::move(item), out);
  const size_t own = out->rows_used;
  MSP_RETURN_IF_ERROR(AddAlone(pair, plan.golden_first[index], out));
  if (own < out->rows_used) MoveToFront(own, pair.options.tensors != nullptr, out);
  if (index == plan.last) MSP_RETURN_IF_ERROR(AddAlone(pair, plan.golden_last, out));
  return OkStatus();
}

}  // namespace msprobe
