#include "match/cross_items.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <optional>
#include <utility>

#include "base/parallel.h"
#include "base/text.h"
#include "dump/dump_items.h"
#include "ops/framework_names.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

constexpr size_t kOpsPerTask = 256;

/// A tensor of an op, as far as it can be told from another.
struct ShapedItem {
  uint32_t op = kNoOp;
  std::string suffix;
  bool output = false;
  std::vector<int64_t> shape;  // without dimensions of 1
  int64_t count = 1;
  double norm = -1;  // -1: unknown
};

bool ShapeOf(const JsonValue& leaf, ShapedItem* out) {
  const JsonValue* shape = leaf.Find("shape");
  const JsonValue* dtype = leaf.Find("dtype");
  if (!shape || !shape->IsArray() || !dtype) return false;
  for (const JsonValue& n : shape->Items()) {
    if (!n.IsInt() || n.Int() < 0) return false;
    if (__builtin_mul_overflow(out->count, n.Int(), &out->count)) return false;
    if (n.Int() != 1) out->shape.push_back(n.Int());
  }
  if (const JsonValue* norm = leaf.Find("Norm"); norm && norm->IsNumber()) out->norm = norm->Number();
  return true;
}

/// Tensors of ops of one dump, and what reading them needs.
class TensorReader {
 public:
  explicit TensorReader(const DumpFile& dump) : items_(dump) {}

  StatusOr<std::vector<ShapedItem>> Read(uint32_t index) {
    MSP_ASSIGN_OR_RETURN(std::vector<Item>* const items, items_.Read(index));
    std::vector<ShapedItem> out;
    for (Item& item : *items) {
      const bool input = item.state == ItemState::kInput || item.state == ItemState::kKwarg;
      if ((!input && item.state != ItemState::kOutput) || !item.leaf || !item.leaf->IsObject()) continue;
      ShapedItem shaped;
      shaped.op = index;
      shaped.output = !input;
      if (!ShapeOf(*item.leaf, &shaped)) continue;
      shaped.suffix = std::move(item.suffix);
      out.push_back(std::move(shaped));
    }
    return out;
  }

 private:
  DumpItems items_;
};

/// The vectors of a batch norm have one shape. Its function takes the statistics ahead of weight and bias, the
/// primitive of MindSpore behind them: what one is, its place tells, and no value.
std::string_view VectorOfBatchNorm(std::string_view op, std::string_view item) {
  constexpr std::string_view kInput = ".input.";
  constexpr std::array<std::string_view, 4> kFunction = {"mean", "var", "weight", "bias"},
                                            kPrimitive = {"weight", "bias", "mean", "var"};
  if (!item.starts_with(kInput)) return {};
  const std::string_view place = item.substr(kInput.size());
  if (place.size() == 1 && place[0] >= '1' && place[0] <= '4') {
    const bool primitive = ApiOrClassOf(op).starts_with("BatchNorm");
    return (primitive ? kPrimitive : kFunction)[static_cast<size_t>(place[0] - '1')];
  }
  for (const std::string_view name : kFunction) {
    if (place.ends_with(name)) return name;  // running_mean
  }
  return {};
}

bool IsBatchNorm(std::string_view op) { return CommonFunctionOf(ApiOrClassOf(op)).name == "batch_norm"; }

/// The golden item of each target item by some rule; -1: none.
using Assignment = std::vector<int>;

class Assigner {
 public:
  Assigner(const std::vector<ShapedItem>& target, const std::vector<ShapedItem>& golden)
      : target_(target), golden_(golden) {}

  Assignment ByPlace() const {
    Assignment out(target_.size(), -1);
    for (size_t i = 0; i < target_.size(); ++i) {
      for (size_t j = 0; j < golden_.size(); ++j) {
        if (golden_[j].suffix == target_[i].suffix) out[i] = static_cast<int>(j);
      }
    }
    return out;
  }

  /// Equal shapes in order where both sides have as many of them, then at equal places, then in order whatever their
  /// number, then as many elements in order.
  Assignment ByShape() const {
    Assignment out = ByPlace();
    std::vector<bool> taken(golden_.size(), false);
    for (size_t i = 0; i < out.size(); ++i) {
      const std::optional<size_t> same = InOrder(i);
      if (same) out[i] = static_cast<int>(*same);
    }
    for (size_t i = 0; i < out.size(); ++i) {
      if (out[i] >= 0 && !taken[static_cast<size_t>(out[i])] && Alike(i, static_cast<size_t>(out[i]))) {
        taken[static_cast<size_t>(out[i])] = true;
      } else {
        out[i] = -1;
      }
    }
    for (const bool exact : {true, false}) {
      for (size_t i = 0; i < out.size(); ++i) {
        for (size_t j = 0; j < golden_.size() && out[i] < 0; ++j) {
          if (taken[j] || target_[i].output != golden_[j].output) continue;
          if (exact ? !Alike(i, j) : target_[i].count != golden_[j].count) continue;
          out[i] = static_cast<int>(j);
          taken[j] = true;
        }
      }
    }
    return out;
  }

  /// Operands of a sum or product may be exchanged (`outputs` false), and gradients come in the order in which they
  /// were ready, which two frameworks do not share: of those of one shape, the nearest in size stand against each
  /// other.
  Assignment ByNorm(bool outputs) const {
    Assignment out = ByShape();
    for (size_t i = 0; i < out.size(); ++i) {
      for (size_t k = i + 1; k < out.size(); ++k) {
        if (out[i] < 0 || out[k] < 0 || target_[i].output != outputs || target_[k].output != outputs) continue;
        if (target_[i].count != target_[k].count) continue;
        const auto x = static_cast<size_t>(out[i]), y = static_cast<size_t>(out[k]);
        if (Apart(i, x) + Apart(k, y) > Apart(i, y) + Apart(k, x)) std::swap(out[i], out[k]);
      }
    }
    return out;
  }

  /// The vectors of a batch norm by what they are; what has no partner so stands as it stood.
  Assignment OfBatchNorm(std::string_view target_op, std::string_view golden_op) const {
    Assignment out = ByShape();
    for (size_t i = 0; i < out.size(); ++i) {
      const std::string_view role = VectorOfBatchNorm(target_op, target_[i].suffix);
      for (size_t j = 0; !role.empty() && !target_[i].output && j < golden_.size(); ++j) {
        if (!golden_[j].output && VectorOfBatchNorm(golden_op, golden_[j].suffix) == role) out[i] = static_cast<int>(j);
      }
    }
    return out;
  }

  bool OutputsDiffer() const {
    const auto is_output = [](const ShapedItem& item) { return item.output; };
    return std::count_if(target_.begin(), target_.end(), is_output) !=
           std::count_if(golden_.begin(), golden_.end(), is_output);
  }
  void DropOutputs(Assignment* assignment) const {
    for (size_t i = 0; i < assignment->size(); ++i) {
      if (target_[i].output) (*assignment)[i] = -1;
    }
  }

  size_t Alike(const Assignment& assignment) const {
    size_t out = 0;
    for (size_t i = 0; i < assignment.size(); ++i) {
      out += assignment[i] >= 0 && target_[i].count == golden_[static_cast<size_t>(assignment[i])].count;
    }
    return out;
  }

 private:
  /// The golden item that is as far down among those of this shape; nothing where there are more on one side.
  std::optional<size_t> InOrder(size_t i) const {
    const auto like = [&](const std::vector<ShapedItem>& items, size_t end) {
      return std::count_if(
          items.begin(), items.begin() + static_cast<std::ptrdiff_t>(end),
          [&](const ShapedItem& item) { return item.output == target_[i].output && item.shape == target_[i].shape; });
    };
    if (like(target_, target_.size()) != like(golden_, golden_.size())) return std::nullopt;
    auto left = like(target_, i);
    for (size_t j = 0; j < golden_.size(); ++j) {
      if (Alike(i, j) && left-- == 0) return j;
    }
    return std::nullopt;
  }

  double Apart(size_t i, size_t j) const {
    const double a = target_[i].norm, b = golden_[j].norm;
    return a < 0 || b < 0 ? 0 : std::fabs(a - b) / std::max({a, b, 1e-30});
  }
  bool Alike(size_t i, size_t j) const {
    return target_[i].output == golden_[j].output && target_[i].shape == golden_[j].shape;
  }

  const std::vector<ShapedItem>&target_, &golden_;
};

/// Whether inputs of one shape may stand in another order.
bool Commutes(std::string_view op) {
  const std::string name = CommonFunctionOf(ApiOrClassOf(op)).name;
  return name == "add" || name == "mul" || name == "maximum" || name == "minimum";
}

struct Found {
  uint32_t op = 0;
  OpLinks links;
};

void AddLinks(const std::vector<ShapedItem>& target, const std::vector<ShapedItem>& golden,
              const Assignment& assignment, std::vector<Found>* found) {
  for (size_t k = 0; k < target.size(); ++k) {
    const auto of_op = [&](const Found& f) { return f.op == target[k].op; };
    if (std::none_of(found->begin(), found->end(), of_op)) found->push_back({target[k].op, {}});
    if (assignment[k] < 0) continue;
    const ShapedItem& partner = golden[static_cast<size_t>(assignment[k])];
    std::find_if(found->begin(), found->end(), of_op)
        ->links.links.push_back({target[k].suffix, partner.suffix, partner.op});
  }
}

/// What a product and the bias behind it are given and give together. The first result of the bias goes on to the
/// product.
StatusOr<std::vector<ShapedItem>> WithBias(TensorReader* reader, uint32_t product, uint32_t bias) {
  MSP_ASSIGN_OR_RETURN(std::vector<ShapedItem> out, reader->Read(bias));
  std::vector<int64_t> given;
  for (const ShapedItem& item : out) {
    if (!item.output) given = item.shape;
  }
  const auto passed =
      std::find_if(out.begin(), out.end(), [&](const ShapedItem& item) { return item.output && item.shape == given; });
  if (passed != out.end()) out.erase(passed);
  MSP_ASSIGN_OR_RETURN(std::vector<ShapedItem> own, reader->Read(product));
  for (ShapedItem& item : own) {
    if (item.output) out.push_back(std::move(item));
  }
  return out;
}

Status LinkBias(const DumpFile& target, const DumpFile& golden, const BiasGradient& of, std::vector<Found>* found) {
  TensorReader reader(target), golden_reader(golden);
  MSP_ASSIGN_OR_RETURN(const auto a, of.of_golden ? reader.Read(of.target) : WithBias(&reader, of.target, of.bias));
  MSP_ASSIGN_OR_RETURN(const auto b,
                       of.of_golden ? WithBias(&golden_reader, of.golden, of.bias) : golden_reader.Read(of.golden));
  const Assigner assigner(a, b);
  Assignment by_shape = assigner.ByNorm(true);
  if (assigner.OutputsDiffer()) assigner.DropOutputs(&by_shape);
  std::vector<Found> mine;
  if (!of.of_golden) mine.push_back({of.target, LinksOfPart(of.golden)});
  AddLinks(a, b, by_shape, &mine);
  for (Found& f : mine) found->push_back(std::move(f));
  return OkStatus();
}

}  // namespace

OpLinks LinksOfPart(uint32_t golden) { return {{{".input.0", ".input.0", golden}}, kNoOp}; }

Status LinkByShape(const DumpFile& target, const DumpFile& golden, const std::vector<BiasGradient>& biases,
                   MatchPlan* plan) {
  std::vector<Found> joined;
  for (const BiasGradient& bias : biases) MSP_RETURN_IF_ERROR(LinkBias(target, golden, bias, &joined));
  for (Found& f : joined) plan->links.emplace(f.op, std::move(f.links));
  std::mutex mutex;
  std::vector<Found> found;
  const size_t ops = target.ops().size();
  MSP_RETURN_IF_ERROR(ParallelFor((ops + kOpsPerTask - 1) / kOpsPerTask, [&](size_t task) -> Status {
    TensorReader reader(target), golden_reader(golden);
    std::vector<Found> mine;
    for (size_t i = task * kOpsPerTask; i < std::min(ops, (task + 1) * kOpsPerTask); ++i) {
      const uint32_t g = plan->golden_of[i];
      const std::string_view name = target.ops().NameAt(i);
      if (g == kNoOp || plan->links.count(static_cast<uint32_t>(i)) || IsModuleName(name)) continue;
      MSP_ASSIGN_OR_RETURN(const auto a, reader.Read(static_cast<uint32_t>(i)));
      MSP_ASSIGN_OR_RETURN(const auto b, golden_reader.Read(g));
      const Assigner assigner(a, b);
      const bool backward = ParseOpName(name).direction == OpDirection::kBackward;
      const bool exchanges = !backward && Commutes(name);
      Assignment by_shape = backward || exchanges ? assigner.ByNorm(backward)
                            : IsBatchNorm(name)   ? assigner.OfBatchNorm(name, golden.ops().NameAt(g))
                                                  : assigner.ByShape();
      // Where one side lists fewer gradients, they are those of a part of the function.
      if (backward && assigner.OutputsDiffer()) assigner.DropOutputs(&by_shape);
      const Assignment by_place = assigner.ByPlace();
      const size_t alike = assigner.Alike(by_shape), placed = assigner.Alike(by_place);
      if (!backward && (alike < placed || by_shape == by_place)) continue;
      std::vector<Found> own{{static_cast<uint32_t>(i), {{}, backward ? kNoOp : g}}};
      AddLinks(a, b, by_shape, &own);
      mine.push_back(std::move(own[0]));
    }
    const std::lock_guard lock(mutex);
    for (Found& f : mine) found.push_back(std::move(f));
    return OkStatus();
  }));
  for (Found& f : found) plan->links.emplace(f.op, std::move(f.links));
  return OkStatus();
}

}  // namespace msprobe
