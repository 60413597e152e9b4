// Which nodes of a tensor parallel model hold partial sums, or parts although the values of their ranks are equal.
#include <algorithm>

#include "base/text.h"
#include "dump/flatten.h"
#include "ops/collective.h"
#include "ops/op_traits.h"
#include "parallel/merge_pool.h"

namespace msprobe {
namespace {

struct ClassOf {
  bool column = false, row = false, forward = false, backward = false;
};

ClassOf Classify(std::string_view name) {
  ClassOf out;
  const std::vector<std::string_view> parts = Segments(name);
  if (parts.size() < 4) return out;
  out.forward = parts[parts.size() - 2] == "forward";
  out.backward = parts[parts.size() - 2] == "backward";
  out.column = Contains(parts[parts.size() - 3], "ColumnParallelLinear");
  out.row = Contains(parts[parts.size() - 3], "RowParallelLinear");
  return out;
}

bool IsProduct(std::string_view name) { return Contains(name, "matmul") || Contains(name, ".linear."); }

/// The communication that sums what the ranks give; null for any other op.
const Collective* SumOf(std::string_view op_name) {
  const std::string_view api = CommApi(op_name);
  const Collective* call = api.empty() ? nullptr : FindCollective(api);
  return call && call->Has(op_trait::kSums) ? call : nullptr;
}

class Marker {
 public:
  explicit Marker(MergePool* pool) : pool_(*pool) {}

  Status Run() {
    std::vector<uint32_t> stack{pool_.Root(0)};
    while (!stack.empty()) {
      const uint32_t at = stack.back();
      stack.pop_back();
      if (pool_[at].type != NodeType::kModule) continue;
      const ClassOf c = Classify(pool_[at].name);
      if ((c.row && c.forward) || (c.column && c.backward)) MSP_RETURN_IF_ERROR(MarkProducts(at));
      if (c.column && c.forward) MSP_RETURN_IF_ERROR(MarkSpan(at));
      const auto& children = pool_[at].children;
      stack.insert(stack.end(), children.begin(), children.end());
    }
    return OkStatus();
  }

 private:
  // First tensor among inputs (`input` true: number `index` of them) or outputs.
  const JsonValue* TensorAt(const JsonValue& op, std::string_view name, bool output, size_t index) {
    items_.clear();
    FlattenOp(name, op, &items_);
    size_t at = 0;
    for (const Item& item : items_) {
      if ((item.state == ItemState::kOutput) != output) continue;
      if (at++ == index) return item.leaf && item.leaf->IsObject() ? item.leaf : nullptr;
    }
    return nullptr;
  }

  static bool Equal(const TensorStats& a, const TensorStats& b) {
    const auto same = [](const StatNumber& x, const StatNumber& y) {
      return x.given() && y.given() && x.value() == y.value();
    };
    return same(a.max, b.max) && same(a.min, b.min) && same(a.mean, b.mean) && same(a.norm, b.norm);
  }

  // The product of a row parallel layer is a summand; the reduction that takes it gives the sum.
  Status MarkProducts(uint32_t module) {
    std::vector<uint32_t> reductions;
    for (uint32_t c : pool_[module].children)
      if (SumOf(pool_[c].was)) reductions.push_back(c);
    if (reductions.empty()) return OkStatus();
    for (uint32_t c : pool_[module].children) {
      if (!IsProduct(pool_[c].was) || pool_[c].type != NodeType::kApi) continue;
      MSP_RETURN_IF_ERROR(pool_.ReadOp(c, &doc_));
      const JsonValue* out = doc_.IsObject() ? TensorAt(doc_, pool_[c].was, true, 0) : nullptr;
      if (!out) continue;
      const TensorStats product = TensorStats::Of(*out);
      for (auto it = reductions.begin(); it != reductions.end(); ++it) {
        MSP_RETURN_IF_ERROR(pool_.ReadOp(*it, &other_));
        const size_t index = SumOf(pool_[*it].was)->Fills() ? 1 : 0;  // behind the buffer for the sum
        const JsonValue* in = other_.IsObject() ? TensorAt(other_, pool_[*it].was, false, index) : nullptr;
        // MindSpore's functions that return the sum have no buffer for it.
        if (index > 0 && other_.IsObject() && !(in && in->Find("shape")))
          in = TensorAt(other_, pool_[*it].was, false, 0);
        if (!in || !Equal(product, TensorStats::Of(*in))) continue;
        pool_[c].reduced = *it;
        pool_.decisions().reduced.emplace_back(pool_[c].name, pool_[*it].name);
        reductions.erase(it);
        break;
      }
    }
    return OkStatus();
  }

  // True when the ranks of the grid show other values.
  StatusOr<bool> Differs(uint32_t node) {
    const size_t stage = pool_[node].rank / pool_.Cells();
    MSP_RETURN_IF_ERROR(pool_.ReadOp(node, &doc_));
    for (size_t cell = 0; cell < pool_.Cells(); ++cell) {
      const uint32_t peer = pool_.Find(pool_.At(stage, cell), pool_[node].was);
      if (peer == kNoIndex || peer == node) continue;
      MSP_RETURN_IF_ERROR(pool_.ReadOp(peer, &other_));
      if (!doc_.IsObject() || !other_.IsObject()) continue;
      const OpDifference differ = CompareOps(pool_[node].was, doc_, other_);
      if (differ.input || differ.output) return true;
    }
    return false;
  }

  // From a column parallel layer to the row parallel one beside it everything is split, also where no value tells.
  Status MarkSpan(uint32_t column) {
    const uint32_t up = pool_[column].parent;
    if (up == kNoIndex) return OkStatus();
    MSP_ASSIGN_OR_RETURN(const bool differs, Differs(column));
    if (differs) return OkStatus();
    const auto& children = pool_[up].children;
    const auto begin = std::find(children.begin(), children.end(), column);
    auto end = children.end();
    for (auto it = begin; it != children.end(); ++it)
      if (Contains(pool_[*it].name, "RowParallelLinear")) end = it;
    if (end == children.end()) return OkStatus();
    for (auto it = begin; it <= end; ++it) MarkSubtree(*it, it == begin, it == end);
    return OkStatus();
  }

  void MarkSubtree(uint32_t top, bool first, bool last) {
    std::vector<uint32_t> stack{top};
    while (!stack.empty()) {
      const uint32_t at = stack.back();
      stack.pop_back();
      PoolNode& n = pool_[at];
      const bool end = at == top || (n.parent == top && IsProduct(n.was));
      n.force = true;
      n.whole_input = end && first;
      n.whole_output = end && last;
      stack.insert(stack.end(), n.children.begin(), n.children.end());
    }
  }

  MergePool& pool_;
  JsonDoc doc_, other_;
  std::vector<Item> items_;
};

}  // namespace

Status MarkTensorParallel(MergePool* pool) { return pool->settings().tp > 1 ? Marker(pool).Run() : OkStatus(); }

}  // namespace msprobe
