#include "compare/pair/joined_op.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "compare/values/described_op.h"
#include "match/modules/left_bias.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

constexpr std::string_view kJoint = ";  ";  // between joined names

using Shape = std::vector<int64_t>;

std::optional<Shape> ShapeOfItem(const ItemView& item) {
  if (!item.dims || !item.dims->IsArray()) return std::nullopt;
  Shape out;
  for (const JsonValue& n : item.dims->Items()) {
    if (!n.IsInt() || n.Int() < 0) return std::nullopt;
    out.push_back(n.Int());
  }
  return out;
}

std::string TextOf(const Shape& shape) {
  std::string out = "[";
  for (const int64_t n : shape) out.append(out.size() > 1 ? ", " : "").append(std::to_string(n));
  return out + "]";
}

/// The shape of the parts put together along one dimension; nothing where they do not fit.
std::optional<Shape> JoinShapes(const std::vector<const ItemView*>& parts, bool last) {
  std::optional<Shape> out;
  for (const ItemView* part : parts) {
    std::optional<Shape> own = ShapeOfItem(*part);
    if (!own || own->empty()) return std::nullopt;
    const size_t along = last ? own->size() - 1 : 0;
    if (!out) {
      out = std::move(own);
      continue;
    }
    if (own->size() != out->size()) return std::nullopt;
    for (size_t d = 0; d < own->size(); ++d) {
      if (d != along && (*own)[d] != (*out)[d]) return std::nullopt;
    }
    if (__builtin_add_overflow((*out)[along], (*own)[along], &(*out)[along])) return std::nullopt;
  }
  return out;
}

double CountOf(const Shape& shape) {
  double out = 1;
  for (const int64_t n : shape) out *= static_cast<double>(n);
  return out;
}

/// A statistic of all parts from those of each; that of the first where one is no number.
StatValue JoinStats(const std::vector<const ItemView*>& parts, Stat k) {
  double value = 0, count = 0;
  for (const ItemView* part : parts) {
    const StatValue& v = part->stats[k];
    if (!v.IsNumber()) return parts.front()->stats[k];
    const double own = v.AsDouble(), elements = CountOf(ShapeOfItem(*part).value_or(Shape()));
    const bool first = part == parts.front();
    switch (k) {
      case kMax: value = first ? own : std::max(value, own); break;
      case kMin: value = first ? own : std::min(value, own); break;
      case kMean: value += own * elements; break;
      default: value += own * own; break;
    }
    count += elements;
  }
  return StatValue::Of(k == kMean ? value / std::max(count, 1.0) : k == kNorm ? std::sqrt(value) : value);
}

/// One item made of the same item of several ops; inputs are the same for all of them, but for the gradients that
/// backward ops are given.
ItemView JoinItems(const std::vector<const ItemView*>& parts, bool backward) {
  ItemView item = *parts.front();
  const bool given = item.state == ItemState::kInput || item.state == ItemState::kKwarg;
  if (parts.size() == 1 || (given && !backward)) return item;
  const bool last = given || item.state == ItemState::kOutput;
  const std::optional<Shape> shape = JoinShapes(parts, last);
  if (!shape) return item;
  item.joined = true;
  item.join = last ? JoinAxis::kLast : JoinAxis::kFirst;
  item.shape = TextOf(*shape);
  item.name.clear();
  for (const ItemView* part : parts) {
    item.name.append(item.name.empty() ? std::string_view() : kJoint).append(part->name);
    if (part->HasData()) item.parts.push_back(part->data_name);
  }
  for (const Stat k : {kMax, kMin, kMean, kNorm}) item.stats[k] = JoinStats(parts, k);
  return item;
}

StatusOr<std::vector<DescribedOp>> DescribeOps(const DumpFile& dump, const std::vector<uint32_t>& ops, CompareMode mode,
                                               OpDiff* out) {
  std::vector<DescribedOp> all(ops.size());
  for (size_t k = 0; k < ops.size(); ++k) {
    out->docs.push_back(std::make_unique<JsonDoc>());
    MSP_RETURN_IF_ERROR(dump.ParseOp(ops[k], out->docs.back().get()));
    size_t count = 0;
    DescribeOp(dump.ops().NameAt(ops[k]), *out->docs.back(), mode, &out->scratch, &all[k].items, &count);
    all[k].items.resize(count);
    for (size_t i = 0; i < count; ++i) all[k].at.emplace(all[k].items[i].suffix, i);
  }
  return all;
}

/// The items of the first op, each joined with those at its place in the others.
void JoinOps(const std::vector<DescribedOp>& ops, bool backward, std::vector<ItemView>* items, size_t* used) {
  items->clear();
  for (const ItemView& item : ops.front().items) {
    std::vector<const ItemView*> parts;
    for (const DescribedOp& op : ops) {
      if (const ItemView* part = op.Find(item.suffix)) parts.push_back(part);
    }
    items->push_back(parts.size() == ops.size() ? JoinItems(parts, backward) : item);
  }
  *used = items->size();
}

std::vector<GivenTensor> GivenBy(const std::vector<ItemView>& items, size_t count) {
  std::vector<GivenTensor> out;
  for (size_t i = 0; i < count; ++i) {
    if (items[i].state != ItemState::kOutput || !items[i].tensor) continue;
    const std::optional<Shape> shape = ShapeOfItem(items[i]);
    if (shape && !shape->empty()) out.push_back({static_cast<int64_t>(CountOf(*shape)), shape->back()});
  }
  return out;
}

}  // namespace

Status DescribeJoined(const LinkedDumps& of, size_t index, const OpLinks& links, OpDiff* out) {
  out->op = of.target.ops().NameAt(index);
  out->golden_op = {};
  out->matched = true;
  out->docs.clear();
  const std::vector<uint32_t> own{static_cast<uint32_t>(index)}, whole{links.others};
  const bool targets = links.joins_targets;
  MSP_ASSIGN_OR_RETURN(const std::vector<DescribedOp> a,
                       DescribeOps(of.target, targets ? links.joined : own, of.mode, out));
  MSP_ASSIGN_OR_RETURN(const std::vector<DescribedOp> b,
                       DescribeOps(of.golden, targets ? whole : links.joined, of.mode, out));
  const bool backward = ParseOpName(out->op).direction == OpDirection::kBackward;
  JoinOps(a, backward, &out->target, &out->rows_used);
  JoinOps(b, backward, &out->golden, &out->golden_used);
  // What each part gives backward is a summand of the gradient, and a result beside which a bias stands lacks it: those
  // of the golden run have no partner.
  if (!backward &&
      LeavesBias(GivenBy(out->target, out->rows_used)) == LeavesBias(GivenBy(out->golden, out->golden_used))) {
    return OkStatus();
  }
  std::erase_if(out->golden, [](const ItemView& item) { return item.state == ItemState::kOutput; });
  out->golden_used = out->golden.size();
  return OkStatus();
}

}  // namespace msprobe
