#include "diagnose/overflow/overflow_describe.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_set>

#include "base/message.h"
#include "base/text.h"
#include "compare/first_difference/first_difference.h"
#include "diagnose/overflow/mechanism.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

constexpr size_t kShownItems = 6;    // inputs, and outputs, of an op
constexpr size_t kShownNear = 3;     // ops near overflow
constexpr uint32_t kLookBack = 256;  // ops before a source whose margins are computed
constexpr double kNear = 8;          // a margin below this is near
constexpr size_t kDeepestChain = 10000;

std::string NumberText(const JsonValue& v) {
  if (v.IsNull()) return "null";
  if (v.IsBool()) return v.Bool() ? "true" : "false";
  if (v.IsString()) return std::string(v.Text());
  if (!v.IsNumber()) return "...";
  const double d = v.Number();
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d > 0 ? "inf" : "-inf";
  return fmt::format("{:.6g}", d);
}

std::string_view TextMember(const JsonValue& v, const char* key) {
  const JsonValue* m = v.Find(key);
  return m && m->IsString() ? m->Text() : std::string_view();
}

std::string ShapeText(const JsonValue& leaf) {
  const JsonValue* shape = leaf.Find("shape");
  if (!shape || !shape->IsArray()) return "[]";
  std::string out = "[";
  for (const JsonValue& d : shape->Items()) out += (out.size() > 1 ? ", " : "") + NumberText(d);
  return out + "]";
}

/// The op whose backward this is, else the op itself.
std::string ForwardOf(std::string_view name) {
  const NameParts parsed = ParseOpName(name);
  if (parsed.direction != OpDirection::kBackward) return std::string(name);
  std::string out(parsed.base);
  out.append(parsed.number_last ? ".forward." : ".").append(parsed.number);
  if (!parsed.number_last) out.append(".forward");
  return out;
}

/// Of the items of one op: what is shown, the bad ones first to be kept.
Status DescribeItems(const DumpFile& dump, uint32_t op, OverflowFinding* out) {
  JsonDoc doc, forward_doc;
  MSP_RETURN_IF_ERROR(dump.ParseOp(op, &doc));
  std::vector<Item> items, forward;
  const std::string name(dump.ops()[op].name), forward_name = ForwardOf(name);
  FlattenOp(name, doc, &items);
  const auto forward_op = forward_name == name ? std::nullopt : dump.FindOp(forward_name);
  if (forward_op) {
    MSP_RETURN_IF_ERROR(dump.ParseOp(*forward_op, &forward_doc));
    FlattenOp(forward_name, forward_doc, &forward);
  }
  if (out->kind == OverflowSource::Kind::kOp && !out->constant) out->mechanism = MechanismOf(name, items, forward);
  for (const Item& item : items) {
    if (!item.leaf->IsObject()) continue;
    const JsonValue* tensor = TensorOf(item.leaf);
    const bool result = item.state == ItemState::kOutput || item.state == ItemState::kParameterGrad;
    auto& list = result ? out->outputs : out->inputs;
    const bool number = item.leaf->Find("value") && item.leaf->Find("value")->IsNumber();
    if (!tensor && !number) continue;
    const bool bad = tensor && BadKindsOf(*tensor) != 0;
    if (list.size() < kShownItems || bad) list.emplace_back(item.suffix, ItemText(tensor ? *tensor : *item.leaf));
    if (list.size() > 2 * kShownItems) return OkStatus();
  }
  return OkStatus();
}

Status DescribeItem(const DumpFile& dump, uint32_t op, uint32_t index, OverflowFinding* out) {
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(dump.ParseOp(op, &doc));
  std::vector<Item> items;
  FlattenOp(dump.ops()[op].name, doc, &items);
  if (index >= items.size()) return OkStatus();
  out->item = items[index].suffix;
  if (const JsonValue* tensor = TensorOf(items[index].leaf)) out->item_text = ItemText(*tensor);
  return OkStatus();
}

/// The last op before `reader` that gives a tensor of the shape of the reader's item; "" without one.
StatusOr<std::string> LastOfShape(const DumpFile& dump, uint32_t reader, uint32_t index) {
  JsonDoc doc;
  std::vector<Item> items;
  MSP_RETURN_IF_ERROR(dump.ParseOp(reader, &doc));
  FlattenOp(dump.ops()[reader].name, doc, &items);
  const JsonValue* tensor = index < items.size() ? TensorOf(items[index].leaf) : nullptr;
  if (!tensor) return std::string();
  const std::string shape = ShapeText(*tensor);
  for (uint32_t op = reader; op-- > 0 && reader - op <= kLookBack;) {
    items.clear();
    if (dump.ParseOp(op, &doc).ok() && doc.IsObject()) FlattenOp(dump.ops()[op].name, doc, &items);
    for (const Item& item : items) {
      const JsonValue* output = item.state == ItemState::kOutput ? TensorOf(item.leaf) : nullptr;
      if (output && ShapeText(*output) == shape) return std::string(dump.ops()[op].name);
    }
  }
  return std::string();
}

OverflowOp At(const OverflowStepView& step, OpPlace place) {
  OverflowFiles& files = (*step.files)[place.rank];
  return files.Describe(files.dump().ops()[place.op].name);
}

}  // namespace

std::vector<std::string> OverflowFiles::ChainOf(std::string_view op) {
  OpenConstruct();
  std::vector<std::string> chain{std::string(op)};
  std::unordered_set<std::string_view> seen{op};
  for (auto it = parents_.find(op); it != parents_.end() && !it->second.empty(); it = parents_.find(it->second)) {
    if (!seen.insert(it->second).second || chain.size() > kDeepestChain) break;
    chain.emplace_back(it->second);
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

const std::vector<std::string>* OverflowFiles::FramesOf(std::string_view op) {
  OpenStacks();
  if (!stacks_) return nullptr;
  const auto id = stacks_->StackOf(op);
  return id ? &stacks_->Frames(*id) : nullptr;
}

OverflowOp OverflowFiles::Describe(std::string_view op) {
  OverflowOp out;
  out.rank = rank_;
  out.name = op;
  const std::string forward = ForwardOf(op);
  std::vector<std::string> chain = ChainOf(op);
  if (chain.size() == 1 && forward != op) chain = ChainOf(forward);
  const bool module = StartsWith(op, "Module.") || StartsWith(op, "Cell.");
  if (!module && chain.size() > 1) out.module = chain[chain.size() - 2];
  const std::vector<std::string>* frames = FramesOf(op);
  if (!frames && forward != op) frames = FramesOf(forward);
  if (frames) UserFrame(*frames, &out.frame, &out.function);
  return out;
}

void OverflowFiles::OpenConstruct() {
  if (construct_open_) return;
  construct_open_ = true;
  const std::string path = JoinPath(DirName(dump_->path()), "construct.json");
  StatusOr<ConstructFile> file = ConstructFile::Open(path);
  if (!file.ok()) {
    warnings_.push_back(Msg("{} (modules around the op are left out)", file.status().text()));
    return;
  }
  construct_ = std::move(*file);
  if (!construct_->truncated.empty()) warnings_.push_back(construct_->truncated);
  for (const ConstructEntry& e : construct_->entries) parents_.emplace(e.name, e.parent);
}

void OverflowFiles::OpenStacks() {
  if (stacks_open_) return;
  stacks_open_ = true;
  StatusOr<StackFile> file = StackFile::Open(JoinPath(DirName(dump_->path()), "stack.json"));
  if (!file.ok()) {
    warnings_.push_back(Msg("{} (source lines are left out)", file.status().text()));
    return;
  }
  if (!file->truncated().empty()) warnings_.push_back(file->truncated());
  stacks_ = std::move(*file);
}

std::string ItemText(const JsonValue& leaf) {
  if (const JsonValue* value = leaf.Find("value")) return NumberText(*value);
  std::string_view dtype = TextMember(leaf, "dtype");
  if (const size_t dot = dtype.rfind('.'); dot != std::string_view::npos) dtype.remove_prefix(dot + 1);
  std::string out = std::string(dtype) + " " + ShapeText(leaf);
  for (const auto& [key, label] : {std::pair("Max", "max"), std::pair("Min", "min"), std::pair("Mean", "mean")}) {
    const JsonValue* v = leaf.Find(key);
    if (v && !v->IsNull()) out += fmt::format(", {} {}", label, NumberText(*v));
  }
  for (const auto& [key, label] : {std::pair("nan_count", "NaN"), std::pair("inf_count", "inf")}) {
    const JsonValue* v = leaf.Find(key);
    if (v && v->IsInt()) out += fmt::format(", {} {}", v->Int(), label);
  }
  return out;
}

StatusOr<std::vector<OverflowFinding::Near>> NearestTo(const OverflowStepView& step, uint32_t rank, uint32_t end) {
  const OverflowRank& r = (*step.ranks)[rank];
  std::vector<uint32_t> ops;
  for (const NearOverflow& near : r.scan.near) {
    if (near.op < end) ops.push_back(near.op);
  }
  // Dumps of the old tool say nothing about nearness, so the last ops before are looked at.
  for (uint32_t op = end > kLookBack ? end - kLookBack : 0; op < end; ++op) ops.push_back(op);
  std::sort(ops.begin(), ops.end());
  ops.erase(std::unique(ops.begin(), ops.end()), ops.end());
  struct Candidate {
    double margin;
    uint32_t op;
    std::string item;
  };
  std::vector<Candidate> found;
  JsonDoc doc;
  std::vector<Item> items;
  for (const uint32_t op : ops) {
    if (!r.dump->ParseOp(op, &doc).ok() || !doc.IsObject()) continue;
    items.clear();
    FlattenOp(r.dump->ops()[op].name, doc, &items);
    for (const Item& item : items) {
      // Masks hold the lowest number of their dtype on purpose.
      if (item.state != ItemState::kOutput || !item.leaf->IsObject()) continue;
      const JsonValue* tensor = TensorOf(item.leaf);
      const JsonValue* max = tensor ? tensor->Find("Max") : nullptr;
      if (!max || !max->IsNumber()) continue;
      const double margin = OverflowMarginOf(*tensor);
      if (margin < 1 || margin > kNear || (margin == 1 && std::abs(max->Number()) < 1e4)) continue;
      if (BadKindsOf(*tensor) == 0) found.push_back({margin, op, item.suffix});
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.margin < b.margin; });
  std::vector<OverflowFinding::Near> out;
  for (const Candidate& c : found) {
    if (out.size() == kShownNear) break;
    out.push_back({At(step, {rank, c.op}), c.item, c.margin});
  }
  return out;
}

namespace {

const BadOp* FindBadOp(const OverflowScan& scan, uint32_t op) {
  const auto at = std::ranges::lower_bound(scan.ops, op, {}, &BadOp::op);
  return at != scan.ops.end() && at->op == op ? &*at : nullptr;
}

/// Dumps with modules and functions have a bad parameter twice: with its module, and as an input of what it is used in.
Status DescribeUse(const OverflowStepView& step, const OverflowSource& source, OverflowFinding* out) {
  const OpPlace module = source.places[0];
  if (source.kind != OverflowSource::Kind::kParameter || source.reader == module) return OkStatus();
  const OverflowRank& rank = (*step.ranks)[module.rank];
  const BadOp *owner = FindBadOp(rank.scan, module.op), *user = FindBadOp(rank.scan, source.reader.op);
  if (!owner || !user) return OkStatus();
  const auto items_of = [&](const BadOp& op) {
    return std::span(rank.scan.items).subspan(op.begin, op.end - op.begin);
  };
  const auto parameter = std::ranges::find(items_of(*owner), source.item, &BadItem::index);
  if (parameter == items_of(*owner).end()) return OkStatus();
  const auto taken = std::ranges::find_if(
      items_of(*user), [&](const BadItem& i) { return i.state == ItemState::kInput && i.key == parameter->key; });
  OverflowOp use = At(step, source.reader);
  if (taken == items_of(*user).end() || use.module != out->ops[0].name) return OkStatus();
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(rank.dump->ParseOp(user->op, &doc));
  std::vector<Item> items;
  FlattenOp(use.name, doc, &items);
  if (taken->index >= items.size()) return OkStatus();
  out->use_item = items[taken->index].suffix;
  out->use = std::move(use);
  return OkStatus();
}

}  // namespace

StatusOr<OverflowFinding> DescribeSource(const OverflowStepView& step, const OverflowSource& source) {
  OverflowFinding out;
  out.kind = source.kind;
  out.constant = source.constant;
  out.leaf_grad = source.leaf_grad;
  out.carriers = source.carriers;
  out.absorbers = source.absorbers;
  out.absorbed = source.absorbed();
  out.unused = source.unused();
  out.by_identity = source.by_identity;
  out.by_statistics = source.by_statistics;
  out.by_shape = source.by_shape;
  out.by_order = source.by_order;
  std::vector<OpPlace> places = source.places;
  // Memory that was never written is the reader's fault, not that of empty().
  if (source.kind == OverflowSource::Kind::kUninitialised) places = {source.reader};
  std::sort(places.begin(), places.end());
  for (const OpPlace& place : places) out.ops.push_back(At(step, place));
  const OpPlace other = source.kind == OverflowSource::Kind::kUninitialised ? source.places[0] : source.reader;
  if (other != places[0] && places.size() == 1) out.reader = (*step.ranks)[other.rank].dump->ops()[other.op].name;
  const DumpFile& dump = *(*step.ranks)[source.places[0].rank].dump;
  MSP_RETURN_IF_ERROR(DescribeItem(dump, source.places[0].op, source.item, &out));
  MSP_RETURN_IF_ERROR(DescribeUse(step, source, &out));
  MSP_RETURN_IF_ERROR(DescribeItems(*(*step.ranks)[places[0].rank].dump, places[0].op, &out));
  for (const OpPlace& place : source.absorbed_at) out.absorbed_at.push_back(At(step, place));
  for (const auto& [rank, place] : source.reached) out.reached.push_back(At(step, place));
  if (source.mask >= 0) {
    const OpPlace mask = (*step.sources)[static_cast<size_t>(source.mask)].places[0];
    out.mask = (*step.ranks)[mask.rank].dump->ops()[mask.op].name;
  }
  if (source.kind == OverflowSource::Kind::kInput) {
    MSP_ASSIGN_OR_RETURN(out.before, LastOfShape(dump, source.reader.op, source.item));
  }
  MSP_ASSIGN_OR_RETURN(out.near, NearestTo(step, source.reader.rank, source.reader.op));
  return out;
}

}  // namespace msprobe
