#include "graph/build/layouts.h"

#include <utility>
#include <vector>

#include "base/slot_table.h"
#include "dump/flatten.h"
#include "graph/tree/flat_structure.h"
#include "match/structure.h"
#include "ops/op_name.h"
#include "parallel/gradient_scale.h"
#include "parallel/layer_number.h"
#include "parallel/merge_data.h"
#include "parallel/merge_groups.h"
#include "tensor/kernels/dtype.h"

namespace msprobe {
namespace {

constexpr size_t kLooked = 64;  // modules; the first layers have all kinds

bool GivenOtherwise(const ParallelLayout& a, const ParallelLayout& b) {
  return a.rank_size != b.rank_size || a.tp != b.tp || a.pp != b.pp || a.vpp != b.vpp || a.cp != b.cp || a.ep != b.ep;
}

/// How many layers each rank has, by the numbers in the names of its modules; without modules, how many calls.
std::vector<size_t> LayersOfRanks(const RankGraph& rank) {
  std::vector<size_t> out;
  for (const RankFiles* files : FilesOf(rank)) {
    TextIds layers;
    const OpList& ops = files->dump.ops();
    if (IsOneModuleOfCalls(files->construct)) {
      out.push_back(ops.size());
      continue;
    }
    for (size_t i = 0; i < ops.size(); ++i) {
      LayerNumber layer;
      const std::string_view name = ops.NameAt(i);
      if (!IsModuleName(name) || !FindLayerNumber(name, {}, &layer)) continue;
      layers.Enter(name.substr(0, static_cast<size_t>(layer.rest.data() - name.data())));
    }
    out.push_back(layers.size());
  }
  return out;
}

/// The tensors of one module call, of the first rank that has it.
struct Call {
  JsonDoc doc;
  std::vector<Item> items;
  Status Read(const RankGraph& rank, uint32_t node) {
    items.clear();
    const MergeSource& source = rank.merged->sources[node];
    if (source.cells.empty()) return OkStatus();
    MSP_RETURN_IF_ERROR(rank.merged->ReadOp(rank, source.cells[0], &doc));
    if (doc.IsObject()) FlattenOp(rank.merged->NameOf(rank, source.cells[0]), doc, &items);
    return OkStatus();
  }
};

/// Counts tensors of which one side has a part, and sees whether the data itself has another size.
class Sizes {
 public:
  explicit Sizes(int parts) : parts_(parts) {}
  void Add(const Item& a, const Item& b) {
    const JsonValue* dtype = a.leaf ? a.leaf->Find("dtype") : nullptr;
    if (!dtype || !dtype->IsString() || !b.leaf) return;
    const int64_t p = ElementsOf(*a.leaf), q = ElementsOf(*b.leaf);
    if (p <= 0 || q <= 0 || p == q) return;
    if (!IsFloating(ParseDType(dtype->Text()))) data_ = true;
    if (p == parts_ * q || q == parts_ * p) split_ = true;
  }
  bool split() const { return split_ && !data_; }

 private:
  const int parts_;
  bool split_ = false, data_ = false;
};

}  // namespace

StatusOr<LayoutDifference> DifferenceOfLayouts(const GraphSettings& settings, const RankGraph& target,
                                               const RankGraph& golden) {
  LayoutDifference out;
  if (!settings.target_layout || !settings.golden_layout) return out;
  const ParallelLayout &a = *settings.target_layout, &b = *settings.golden_layout;
  if (GivenOtherwise(a, b)) {
    out.divided = true;
    out.stages = a.pp != b.pp || a.vpp != b.vpp;
    // Of the merged dimensions experts are the one whose ranks have tokens of their own.
    MSP_ASSIGN_OR_RETURN(out.gradients,
                         FindGradientScale(static_cast<double>(GridOf(a).ep) / GridOf(b).ep, target, golden));
    return out;
  }
  if (!target.merged || !golden.merged) return out;
  // Sequence parallelism communicates otherwise.
  if (IsOneModuleOfCalls(target.files.construct)) out.divided = LayersOfRanks(target) != LayersOfRanks(golden);
  if (a.pp > 1 && LayersOfRanks(target) != LayersOfRanks(golden)) out.divided = out.stages = true;
  if (a.tp < 2 || out.divided) return out;
  Sizes sizes(a.tp);
  Call left, right;
  size_t looked = 0;
  for (const uint32_t id : target.graph.order) {
    const Node& node = target.graph.nodes[id];
    if (node.type != NodeType::kModule || node.op == kNoIndex || node.match == kNoIndex) continue;
    if (looked++ == kLooked) break;
    MSP_RETURN_IF_ERROR(left.Read(target, id));
    MSP_RETURN_IF_ERROR(right.Read(golden, node.match));
    for (const Item& item : left.items) {
      for (const Item& other : right.items) {
        if (item.suffix == other.suffix && item.state != ItemState::kParameter) sizes.Add(item, other);
      }
    }
  }
  out.divided = sizes.split();
  return out;
}

}  // namespace msprobe
