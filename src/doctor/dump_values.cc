#include "doctor/dump_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "doctor/graft/graft_calls.h"
#include "dump/flatten.h"
#include "dump/reader.h"
#include "ops/op_name.h"
#include "tensor/kernels/dtype.h"

namespace msprobe {
namespace {

constexpr double kSameValue = 1e-5;    // relative: what rounding makes of a statistic
constexpr double kOtherOutput = 1e-4;  // relative: what an op gives differs
constexpr std::array<const char*, 3> kStatistics{"Max", "Min", "Norm"};

/// Tensors of an op: what it is given, or what it gives.
std::vector<Item> TensorsOf(std::string_view name, const JsonValue& op, bool given) {
  std::vector<Item> all, out;
  FlattenOp(name, op, &all);
  for (Item& item : all) {
    const bool is_input = item.state == ItemState::kInput || item.state == ItemState::kKwarg;
    if (given ? !is_input : item.state != ItemState::kOutput) continue;
    if (item.leaf && item.leaf->Find("shape") && item.leaf->Find("dtype")) out.push_back(std::move(item));
  }
  return out;
}

/// Of truths, too.
double ValueOf(const JsonValue& item, const char* statistic) {
  const JsonValue& value = item[statistic];
  return value.IsBool() ? (value.Bool() ? 1 : 0) : value.IsNumber() ? value.Number() : std::nan("");
}

bool SameShape(const JsonValue& x, const JsonValue& y) { return x["shape"] == y["shape"]; }

/// Of one shape and with the same statistics; a value without any is not known to be the same.
bool SameValues(const JsonValue& x, const JsonValue& y, double slack) {
  if (!SameShape(x, y)) return false;
  bool any = false;
  for (const char* name : kStatistics) {
    const double a = ValueOf(x, name), b = ValueOf(y, name);
    if (std::isnan(a) && std::isnan(b)) continue;  // a mask has no norm
    any = true;
    const double scale = std::max(std::fabs(ValueOf(x, "Norm")), std::fabs(ValueOf(y, "Norm")));
    const double size = std::isfinite(scale) && name != kStatistics.back()
                            ? std::min(scale, std::max(std::fabs(a), std::fabs(b)))
                            : std::max(std::fabs(a), std::fabs(b));
    if (!(std::fabs(a - b) <= slack * size)) return false;
  }
  return any;
}

bool IsMany(const JsonValue& item) {
  double count = 1;
  for (const JsonValue& size : item["shape"].Items()) count *= size.Number();
  return count > 1;
}

std::string Described(const JsonValue& item) {
  return fmt::format("Max {:.6g}, Min {:.6g}, Norm {:.6g}", ValueOf(item, "Max"), ValueOf(item, "Min"),
                     ValueOf(item, "Norm"));
}

/// The calls of a forward pass, in their order, and how many there are of a kind.
class ForwardCalls {
 public:
  explicit ForwardCalls(const DumpFile& file) : file_(file) {
    for (size_t i = 0; i < file.ops().size(); ++i) {
      const std::string_view name = file.ops().NameAt(i);
      if (IsBackwardOp(name)) break;
      places_.push_back(i);
      ++kinds_[ParseOpName(name).base];
    }
  }
  const std::vector<size_t>& places() const { return places_; }
  size_t CountOf(std::string_view kind) const {
    const auto found = kinds_.find(kind);
    return found == kinds_.end() ? 0 : found->second;
  }
  /// Whether an earlier call gives the item.
  bool IsMade(const JsonValue& item, size_t before) {
    ReadResults();
    const auto found = made_.find(LooksOf(item));
    return found != made_.end() && found->second < before;
  }

 private:
  /// Shape and statistics.
  static std::string LooksOf(const JsonValue& item) {
    std::string out;
    for (const JsonValue& size : item["shape"].Items()) out += fmt::format("{} ", size.Number());
    for (const char* name : kStatistics) out += fmt::format("|{}", ValueOf(item, name));
    return out;
  }
  /// Of all calls at once: each is read once, however many values are asked for.
  void ReadResults() {
    if (read_) return;
    read_ = true;
    for (const size_t place : places_) {
      JsonDoc doc;
      if (!file_.ParseOp(place, &doc).ok()) continue;
      for (const Item& output : TensorsOf(file_.ops().NameAt(place), doc, false)) {
        if (IsWhole(*output.leaf)) made_.emplace(LooksOf(*output.leaf), place);  // the first of them stays
      }
    }
  }
  const DumpFile& file_;
  bool read_ = false;
  std::map<std::string, size_t> made_;
  std::vector<size_t> places_;
  std::map<std::string_view, size_t> kinds_;  // by what stands before the number of the call
};

StatusOr<DumpFile> OpenDump(const std::string& path) {
  return path.empty() ? StatusOr<DumpFile>(BadInput(Msg("none"))) : DumpFile::Open(path);
}

bool SameShapes(const std::vector<Item>& x, const std::vector<Item>& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [](const Item& a, const Item& b) { return a.suffix == b.suffix && SameShape(*a.leaf, *b.leaf); });
}

}  // namespace

std::string FirstDumpFile(const std::string& step) {
  const auto found = ResolveDumpPath(step);
  if (!found.ok() || found->steps.empty() || found->steps[0].ranks.empty()) return {};
  return JoinPath(found->steps[0].ranks[0].path, "dump.json");
}

bool IsWhole(const JsonValue& item) {
  const DType type = ParseDType(item["dtype"].Text());
  return IsInteger(type) || type == DType::kBool;
}

std::optional<GivenData> FindGivenData(const std::string& dump_a, const std::string& dump_b) {
  const auto a = OpenDump(dump_a), b = OpenDump(dump_b);
  if (!a.ok() || !b.ok()) return std::nullopt;
  ForwardCalls calls_a(*a), calls_b(*b);
  for (const size_t place : calls_a.places()) {
    const std::string name(a->ops().NameAt(place));
    const std::string_view kind = ParseOpName(name).base;
    // Indexing and arithmetic on tensors are numbered in the order of all code; a function called as often is the same.
    if (StartsWith(name, "Tensor.") || calls_a.CountOf(kind) != calls_b.CountOf(kind)) continue;
    const auto other = b->FindOp(name);
    JsonDoc x, y;
    if (!other || !a->ParseOp(place, &x).ok() || !b->ParseOp(*other, &y).ok()) continue;
    const std::vector<Item> in_a = TensorsOf(name, x, true), in_b = TensorsOf(name, y, true);
    const std::vector<Item> out_a = TensorsOf(name, x, false), out_b = TensorsOf(name, y, false);
    if (!SameShapes(in_a, in_b) || !SameShapes(out_a, out_b)) continue;
    const bool has_effect = !std::equal(out_a.begin(), out_a.end(), out_b.begin(), [](const Item& p, const Item& q) {
      return SameValues(*p.leaf, *q.leaf, kOtherOutput);
    });
    if (!has_effect) continue;
    for (size_t i = 0; i < in_a.size(); ++i) {
      const JsonValue &p = *in_a[i].leaf, &q = *in_b[i].leaf;
      if (!IsWhole(p) || !IsWhole(q) || !IsMany(p) || std::isnan(ValueOf(p, "Max")) || std::isnan(ValueOf(q, "Max"))) {
        continue;
      }
      if (SameValues(p, q, kSameValue) || calls_a.IsMade(p, place) || calls_b.IsMade(q, *other)) continue;
      return GivenData{name, in_a[i].suffix.substr(1), Described(p), Described(q)};
    }
  }
  return std::nullopt;
}

bool HoldsOutputs(const std::string& dump, const std::string& op, const std::string& other) {
  const auto file = OpenDump(dump), second = OpenDump(other);
  if (!file.ok() || !second.ok()) return false;
  const auto at = file->FindOp(op);
  JsonDoc doc;
  if (!at || !file->ParseOp(*at, &doc).ok()) return false;
  std::vector<Item> missing = TensorsOf(op, doc, false);
  if (missing.empty()) return false;
  for (size_t i = 0; i < second->ops().size() && !missing.empty(); ++i) {
    JsonDoc call;
    if (!second->ParseOp(i, &call).ok()) continue;
    const std::string_view name = second->ops().NameAt(i);
    std::vector<Item> items = TensorsOf(name, call, true);
    for (Item& item : TensorsOf(name, call, false)) items.push_back(std::move(item));
    std::erase_if(missing, [&](const Item& item) {
      return std::any_of(items.begin(), items.end(),
                         [&](const Item& found) { return SameValues(*item.leaf, *found.leaf, kSameValue); });
    });
  }
  return missing.empty();
}

}  // namespace msprobe
