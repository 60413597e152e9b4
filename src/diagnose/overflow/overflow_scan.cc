#include "diagnose/overflow/overflow_scan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/parallel.h"
#include "base/text.h"
#include "ops/collective.h"
#include "ops/first_argument.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"
#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

constexpr size_t kBlock = 512;       // ops that one thread takes
constexpr uint32_t kMostItems = 64;  // with findings, of one op: more say nothing new
constexpr double kLargestFloat = InfoOf(DType::kFloat32).largest;

bool Holds(std::string_view text, std::string_view part) {
  return memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
}

/// A healthy op holds none of these; its values need not be parsed.
bool MayBeBad(std::string_view text) {
  return Holds(text, "NaN") || Holds(text, "Inf") || Holds(text, "nan") || Holds(text, "inf");
}

/// Digits that every writer has in the least and the greatest number of int64 and of int32.
bool MayBeCut(std::string_view text) { return Holds(text, "22337203685477") || Holds(text, "14748364"); }

/// A statistic as a number: numbers, and the texts that some writers put in the place of NaN and infinities.
bool NumberOf(const JsonValue& leaf, const char* key, double* out) {
  const JsonValue* v = leaf.Find(key);
  if (!v) return false;
  if (v->IsNumber()) {
    *out = v->Number();
    return true;
  }
  if (!v->IsString()) return false;
  const std::string_view text = v->Text();
  if (text == "nan" || text == "NaN")
    *out = std::numeric_limits<double>::quiet_NaN();
  else if (text == "inf" || text == "Infinity")
    *out = std::numeric_limits<double>::infinity();
  else if (text == "-inf" || text == "-Infinity")
    *out = -std::numeric_limits<double>::infinity();
  else
    return false;
  return true;
}

uint8_t KindOf(double v) {
  if (std::isnan(v)) return kBadNaN;
  return std::isinf(v) ? (v > 0 ? kBadPosInf : kBadNegInf) : 0;
}

double ElementsOf(const JsonValue& leaf) {
  const JsonValue* shape = leaf.Find("shape");
  double n = 1;
  if (!shape || !shape->IsArray()) return n;
  for (const JsonValue& d : shape->Items()) n *= d.IsNumber() ? d.Number() : 1;
  return n;
}

/// Findings of Mean and Norm where the extremes are finite or absent.
uint8_t KindsOfSums(const JsonValue& leaf, bool has_extremes, double largest) {
  uint8_t kinds = 0;
  for (const char* key : {"Mean", "Norm"}) {
    double v = 0;
    if (!NumberOf(leaf, key, &v)) continue;
    const uint8_t kind = KindOf(v);
    if (kind == 0) continue;
    if (!has_extremes) {
      kinds |= kind;
    } else if (key[0] == 'M' && largest * ElementsOf(leaf) < kLargestFloat) {
      kinds |= kind;  // no sum of these values reaches beyond single precision
    }
  }
  return kinds;
}

uint64_t Mix(uint64_t h, uint64_t v) {
  h ^= v;
  h *= 0x9E3779B97F4A7C15ull;
  return h ^ (h >> 29);
}

uint64_t MixText(uint64_t h, std::string_view text) { return Mix(h, std::hash<std::string_view>()(text)); }

void SetKeys(const JsonValue& leaf, BadItem* item) {
  uint64_t values = 1;
  double bad = 0;  // elements
  for (const char* key : {"Max", "Min", "Mean", "Norm", "nan_count", "inf_count"}) {
    double v = 0;
    if (!NumberOf(leaf, key, &v)) continue;
    // All NaN are alike, whatever their bits.
    values = Mix(values, std::isnan(v) ? 0x7FF8 : std::bit_cast<uint64_t>(v));
    item->distinctive = item->distinctive || std::isfinite(v);
    if (key[0] != 'M' && key[0] != 'N') bad += v;
  }
  if (const JsonValue* md5 = leaf.Find("md5"); md5 && md5->IsString()) {
    values = MixText(values, md5->Text());
    item->distinctive = true;
  }
  // What is bad from end to end says no more than its shape.
  if (bad > 0 && bad == ElementsOf(leaf)) item->distinctive = false;
  item->elements = static_cast<uint64_t>(ElementsOf(leaf));
  item->loose = Mix(values, std::bit_cast<uint64_t>(ElementsOf(leaf)));
  uint64_t key = values;
  if (const JsonValue* dtype = leaf.Find("dtype"); dtype && dtype->IsString()) key = MixText(key, dtype->Text());
  if (const JsonValue* shape = leaf.Find("shape"); shape && shape->IsArray()) {
    item->scalar = shape->empty();
    for (const JsonValue& d : shape->Items()) key = Mix(key, d.IsUInt() ? d.UInt() : 0);
  }
  item->key = key;
}

/// The part behind ".input.": "0" of ".input.0.1".
std::string_view FirstPart(std::string_view suffix) {
  constexpr size_t kInput = 7;
  if (suffix.size() <= kInput) return {};
  suffix.remove_prefix(kInput);
  return suffix.substr(0, suffix.find('.'));
}

/// Whether the call fills this argument: what is in it before is not part of the call.
bool IsWritten(const Collective* call, const Item& item) {
  if (item.state != ItemState::kInput && item.state != ItemState::kKwarg) return false;
  if (item.leaf->IsObject()) {  // a P2POp says itself which way it goes
    const JsonValue* op = item.leaf->Find("op");
    if (op && op->IsString() && TensorOf(item.leaf) != item.leaf) return Contains(op->Text(), "recv");
  }
  if (!call || !call->Fills()) return false;
  const std::string_view part = FirstPart(item.suffix);
  return part == (item.state == ItemState::kInput ? std::to_string(call->position) : call->keyword);
}

bool IsOutput(const Item& item) { return item.state == ItemState::kOutput || item.state == ItemState::kParameterGrad; }

bool IsFloating(const JsonValue& leaf) {
  const JsonValue* dtype = leaf.Find("dtype");
  if (!dtype || !dtype->IsString()) return false;
  const std::string_view name = dtype->Text();
  return Contains(name, "loat") || Contains(name, "complex");
}

/// Casts of NaN and infinities give these, whatever the device.
bool IsCut(const JsonValue& leaf) {
  const JsonValue* dtype = leaf.Find("dtype");
  if (!dtype || !dtype->IsString()) return false;
  const DType type = ParseDType(dtype->Text());
  if (type != DType::kInt64 && type != DType::kInt32) return false;
  double least = 0, greatest = 0;
  NumberOf(leaf, "Min", &least);
  NumberOf(leaf, "Max", &greatest);
  const double bound = type == DType::kInt64 ? 0x1p63 : 0x1p31;
  return least <= -bound || greatest >= (type == DType::kInt64 ? bound : bound - 1);
}

/// What one thread finds in its block.
class BlockScanner {
 public:
  BlockScanner(const DumpFile& dump, OverflowScan* out) : dump_(dump), out_(out) {}

  Status Run(size_t begin, size_t end) {
    const std::string_view text = dump_.file().text();
    for (size_t i = begin; i < end; ++i) {
      const OpSpan& op = dump_.ops()[i];
      const std::string_view value = text.substr(op.offset, op.length);
      const bool near = Holds(value, "overflow_margin");
      if (!near && !MayBeBad(value) && !MayBeCut(value)) continue;
      MSP_RETURN_IF_ERROR(dump_.ParseOp(i, &doc_));
      if (!doc_.IsObject()) continue;
      items_.clear();
      FlattenOp(op.name, doc_, &items_);
      if (near) Near(i);
      Op(i, op.name);
    }
    return OkStatus();
  }

 private:
  void Near(size_t index) {
    double least = std::numeric_limits<double>::infinity();
    for (const Item& item : items_) {
      const JsonValue* tensor = TensorOf(item.leaf);
      const JsonValue* margin = tensor ? tensor->Find("overflow_margin") : nullptr;
      if (margin && margin->IsNumber()) least = std::min(least, margin->Number());
    }
    if (least >= 1 && std::isfinite(least) && out_->near.size() < OverflowScan::kMostNear)
      out_->near.push_back({static_cast<uint32_t>(index), static_cast<float>(least)});
  }

  void Op(size_t index, std::string_view name) {
    const std::string_view api = CommApi(name);
    const Collective* call = api.empty() ? nullptr : FindCollective(api);
    BadOp bad;
    bad.op = static_cast<uint32_t>(index);
    bad.begin = static_cast<uint32_t>(out_->items.size());
    bad.cuts_begin = static_cast<uint32_t>(out_->cuts.size());
    bool floats = false;
    const bool skips_first = SkipsFirst(name);
    const bool moves_unwritten = MovesUnwritten(name, skips_first);
    for (uint32_t i = 0; i < items_.size(); ++i) {
      const Item& item = items_[i];
      if (!item.leaf->IsObject()) continue;
      if (!IsOutput(item)) bad.constants |= Constant(item);
      if (skips_first && item.suffix == ".input.0") continue;
      const JsonValue* tensor = TensorOf(item.leaf);
      if (!tensor) continue;
      bad.plain = bad.plain && IsPlain(*tensor);
      if (IsOutput(item)) (IsFloating(*tensor) ? floats : bad.has_whole_output) = true;
      if (!api.empty() && IsWritten(call, item)) continue;
      if (IsCut(*tensor)) AddCut(*tensor, IsOutput(item));
      const uint8_t kinds = BadKindsOf(*tensor);
      const bool unwritten = IsOutput(item) ? IsUnwritten(*tensor) : IsUnwrittenInput(*tensor);
      if (IsOutput(item) && (unwritten || moves_unwritten)) continue;
      if (kinds == 0 || out_->items.size() - bad.begin >= kMostItems) continue;
      BadItem found;
      found.index = i;
      found.state = item.state;
      found.kinds = kinds;
      const JsonValue* grad = tensor->Find("requires_grad");
      found.leaf_grad = grad && grad->Bool();
      found.no_grad = grad && grad->IsBool() && !grad->Bool();
      found.unwritten = unwritten;
      SetKeys(*tensor, &found);
      out_->items.push_back(found);
    }
    bad.has_float_output = floats || !api.empty();
    bad.end = static_cast<uint32_t>(out_->items.size());
    bad.cuts_end = static_cast<uint32_t>(out_->cuts.size());
    if (bad.end > bad.begin || bad.cuts_end > bad.cuts_begin || bad.constants) out_->ops.push_back(bad);
  }

  void AddCut(const JsonValue& tensor, bool output) {
    BadItem keys;
    SetKeys(tensor, &keys);
    out_->cuts.push_back({keys.key, keys.elements, output});
  }

  static bool IsPlain(const JsonValue& tensor) {
    const JsonValue* type = tensor.Find("type");
    return !type || EndsWith(type->Text(), ".Tensor") || EndsWith(type->Text(), "Parameter");
  }

  static bool IsUnwritten(const JsonValue& tensor) {
    const JsonValue* mark = tensor.Find("unwritten");
    return mark && mark->Bool();
  }

  /// An input of which a part at least is such memory.
  static bool IsUnwrittenInput(const JsonValue& tensor) {
    const JsonValue* mark = tensor.Find("partly_unwritten");
    return (mark && mark->Bool()) || IsUnwritten(tensor);
  }

  /// Whether the op does not read the tensor that it is given first.
  bool SkipsFirst(std::string_view name) const {
    if (!EndsWith(name, ".forward")) return false;
    const FirstArgument first = FirstArgumentOf(ApiOf(name));
    if (first != FirstArgument::kReadUnlessNoBeta) return first == FirstArgument::kReplaced;
    return std::any_of(items_.begin(), items_.end(), [](const Item& item) {
      double beta = 1;
      return item.suffix == ".input.beta" && item.leaf->IsObject() && NumberOf(*item.leaf, "value", &beta) && beta == 0;
    });
  }

  /// A view or copy of memory that nobody wrote.
  bool MovesUnwritten(std::string_view name, bool skips_first) const {
    bool any = false;
    for (const Item& item : items_) {
      if (skips_first && item.suffix == ".input.0") continue;
      const JsonValue* tensor = IsOutput(item) ? nullptr : TensorOf(item.leaf);
      if (!tensor) continue;
      if (!IsUnwrittenInput(*tensor)) return false;
      any = true;
    }
    return any && ArithmeticOf(name) == Arithmetic::kCopy;
  }

  static uint8_t Constant(const Item& item) {
    double v = 0;
    return NumberOf(*item.leaf, "value", &v) ? KindOf(v) : 0;
  }

  const DumpFile& dump_;
  OverflowScan* out_;
  JsonDoc doc_;
  std::vector<Item> items_;
};

void Append(OverflowScan&& part, OverflowScan* all) {
  const auto shift = static_cast<uint32_t>(all->items.size()), cuts = static_cast<uint32_t>(all->cuts.size());
  for (BadOp& op : part.ops) {
    op.begin += shift;
    op.end += shift;
    op.cuts_begin += cuts;
    op.cuts_end += cuts;
    all->ops.push_back(op);
  }
  all->items.insert(all->items.end(), part.items.begin(), part.items.end());
  all->cuts.insert(all->cuts.end(), part.cuts.begin(), part.cuts.end());
  const size_t room = OverflowScan::kMostNear - std::min(OverflowScan::kMostNear, all->near.size());
  all->near.insert(all->near.end(), part.near.begin(),
                   part.near.begin() + static_cast<std::ptrdiff_t>(std::min(room, part.near.size())));
}

}  // namespace

const JsonValue* TensorOf(const JsonValue* leaf) {
  if (!leaf || !leaf->IsObject()) return nullptr;
  if (leaf->Find("Max") || leaf->Find("Min") || leaf->Find("shape")) return leaf;
  const JsonValue* inner = leaf->Find("tensor");
  return inner && inner->IsObject() ? inner : nullptr;
}

uint8_t BadKindsOf(const JsonValue& leaf) {
  uint8_t kinds = 0;
  double largest = 0;
  bool has_extremes = false;
  for (const char* key : {"Max", "Min"}) {
    double v = 0;
    if (!NumberOf(leaf, key, &v)) continue;
    has_extremes = true;
    kinds |= KindOf(v);
    largest = std::max(largest, std::abs(v));
  }
  for (const auto& [key, kind] : {std::pair("nan_count", uint8_t{kBadNaN}), std::pair("inf_count", uint8_t{0})}) {
    double count = 0;
    if (!NumberOf(leaf, key, &count) || !(count > 0)) continue;
    kinds |= kind;
    // Beside NaN the extremes do not show the sign of an infinity.
    if (kind == 0 && (kinds & kBadInfinities) == 0) kinds |= kBadInfinities;
  }
  return kinds ? kinds : KindsOfSums(leaf, has_extremes, largest);
}

double OverflowMarginOf(const JsonValue& leaf) {
  double v = 0;
  if (NumberOf(leaf, "overflow_margin", &v)) return v;
  const JsonValue* dtype = leaf.Find("dtype");
  if (!dtype || !dtype->IsString()) return 0;
  const std::string_view name = dtype->Text();
  const DType type = ParseDType(name);
  // What is stored in eight bits is scaled to their limit, and float64 has room.
  if (!IsFloating(type) || ElementSize(type) == 1 || type == DType::kFloat64) return 0;
  const double greatest = InfoOf(type).largest;
  double largest = 0;
  for (const char* key : {"Max", "Min"}) {
    if (NumberOf(leaf, key, &v)) largest = std::max(largest, std::abs(v));
  }
  return largest > 0 && std::isfinite(largest) ? greatest / largest : 0;
}

StatusOr<OverflowScan> ScanForOverflow(const DumpFile& dump, bool parallel) {
  const size_t n = dump.ops().size(), blocks = (n + kBlock - 1) / kBlock;
  OverflowScan all;
  const std::function<StatusOr<OverflowScan>(size_t)> make = [&](size_t b) -> StatusOr<OverflowScan> {
    OverflowScan part;
    BlockScanner scanner(dump, &part);
    const size_t begin = b * kBlock, end = std::min(n, begin + kBlock);
    MSP_RETURN_IF_ERROR(scanner.Run(begin, end));
    dump.file().Release(dump.ops()[begin].offset, dump.ops()[end - 1].offset + dump.ops()[end - 1].length);
    return part;
  };
  const std::function<Status(size_t, OverflowScan &&)> take = [&](size_t, OverflowScan&& part) {
    Append(std::move(part), &all);
    return OkStatus();
  };
  if (parallel) {
    constexpr size_t kWindow = 16;
    MSP_RETURN_IF_ERROR(ParallelOrdered<OverflowScan>(blocks, kWindow, make, take));
  } else {
    MSP_RETURN_IF_ERROR(ParallelOrderedAlone<OverflowScan>(blocks, make, take));
  }
  return all;
}

}  // namespace msprobe
