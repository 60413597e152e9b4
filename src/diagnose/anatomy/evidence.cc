#include "diagnose/anatomy/evidence.h"

#include <algorithm>

#include "compare/values/item_view.h"
#include "json/parser.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

using Kind = FirstDifference::Kind;

constexpr uint64_t kLongestOp = 1 << 20;         // bytes of its text
constexpr size_t kMostCalls = 16, kFar = 20000;  // calls of the same function, and how far around they are looked for
constexpr size_t kFirstOps = 64;                 // in which the tokens of the batch stand
constexpr size_t kMostTokens = 12;

OpText TextOf(const DumpFile& dump, size_t op) {
  const OpSpan span = dump.ops()[op];
  if (span.length > kLongestOp) return {};
  return {std::string(span.name), std::string(dump.file().text().substr(span.offset, span.length))};
}

/// Those nearest to `op` before it, and then behind it.
std::vector<OpText> CallsNear(const DumpFile& dump, size_t op) {
  std::vector<OpText> out;
  const OpList& ops = dump.ops();
  const NameParts own = ParseOpName(ops.NameAt(op));
  if (own.direction == OpDirection::kNone) return out;
  const auto add = [&](size_t i) {
    const NameParts name = ParseOpName(ops.NameAt(i));
    if (name.direction != own.direction || name.base != own.base) return;
    if (OpText text = TextOf(dump, i); !text.empty()) out.push_back(std::move(text));
  };
  for (size_t i = op; i-- > 0 && op - i < kFar && out.size() < kMostCalls / 2;) add(i);
  for (size_t i = op + 1; i < ops.size() && i - op < kFar && out.size() < kMostCalls; ++i) add(i);
  return out;
}

bool CountsTokens(const ItemView& item) {
  const DType dtype = ParseDType(item.dtype);
  return item.tensor && item.HasData() && (IsInteger(dtype) || dtype == DType::kBool) && item.dims &&
         item.dims->IsArray() && item.dims->size() == 2;
}

Status AddTokens(const DumpFile& dump, OriginEvidence* out) {
  JsonDoc doc;
  std::vector<Item> scratch;
  std::vector<ItemView> items;
  for (size_t i = 0; i < std::min(kFirstOps, dump.ops().size()); ++i) {
    if (dump.ops().LengthAt(i) > kLongestOp) continue;
    size_t count = 0;
    MSP_RETURN_IF_ERROR(dump.ParseOp(i, &doc));
    DescribeOp(dump.ops().NameAt(i), doc, CompareMode::kTensor, &scratch, &items, &count);
    for (size_t k = 0; k < count && out->tokens.size() < kMostTokens; ++k) {
      if (!CountsTokens(items[k])) continue;
      TokenItem token{std::string(items[k].data_name), std::string(items[k].dtype), {}};
      for (const JsonValue& n : items[k].dims->Items()) {
        token.shape.push_back(n.IsNumber() ? static_cast<int64_t>(n.Number()) : 0);
      }
      out->tokens.push_back(std::move(token));
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::shared_ptr<const OriginEvidence>> EvidenceOf(const DumpPair& pair, const FilePair& files,
                                                           const Differences& differences) {
  const FirstDifference& first = differences.Answer();
  const std::shared_ptr<const OriginEvidence> nothing;
  const Kind kind = first.kind;
  if (kind == Kind::kNone || kind == Kind::kGrows || kind == Kind::kDraw || kind == Kind::kDType) return nothing;
  if (pair.plan.fused || !pair.options.check_shape || (pair.tensors && pair.tensors->changes())) return nothing;
  const bool lone = kind == Kind::kMissingOp || kind == Kind::kExtraOp;
  const size_t op = lone ? differences.seen_op : first.op;
  const uint32_t golden_op = lone ? differences.seen_golden : first.golden_op;
  if (op >= pair.target->ops().size() || golden_op >= pair.golden->ops().size()) return nothing;
  auto out = std::make_shared<OriginEvidence>();
  out->files = files;
  out->target = TextOf(*pair.target, op);
  out->golden = TextOf(*pair.golden, golden_op);
  if (out->target.empty() || out->golden.empty()) return nothing;
  out->results = kind == Kind::kOp || kind == Kind::kCommunication || kind == Kind::kArgument;
  out->both = lone;
  out->shapes = kind == Kind::kShape;
  if (!lone && kind != Kind::kArgument) out->item = first.item;
  out->tensors = pair.target->task() == "tensor" && pair.golden->task() == "tensor";
  if (lone) {
    out->lone_in_golden = kind == Kind::kMissingOp;
    const bool known =
        out->lone_in_golden ? first.golden_op < pair.golden->ops().size() : first.op < pair.target->ops().size();
    if (known) out->lone = out->lone_in_golden ? TextOf(*pair.golden, first.golden_op) : TextOf(*pair.target, first.op);
  }
  out->calls = CallsNear(*pair.golden, golden_op);
  if (out->tensors) MSP_RETURN_IF_ERROR(AddTokens(*pair.target, out.get()));
  return std::shared_ptr<const OriginEvidence>(std::move(out));
}

}  // namespace msprobe
