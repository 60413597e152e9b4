#include "parallel/merge_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/message.h"
#include "base/text.h"
#include "dump/flatten.h"

namespace msprobe {
namespace {

constexpr double kRight = 1e-2;  // of the worst copy's error
constexpr std::array<const char*, 3> kAxisTitle{"tensor parallelism(TP)", "context parallelism(CP)",
                                                "expert parallelism(EP)"};

/// The items of the cells of one node, and what they are merged to.
struct Cells {
  std::vector<JsonDoc> docs;
  std::vector<std::vector<Item>> items;
};

const Item* FindItem(const std::vector<Item>& items, const std::string& suffix, size_t guess) {
  if (guess < items.size() && items[guess].suffix == suffix) return &items[guess];
  for (const Item& item : items)
    if (item.suffix == suffix) return &item;
  return nullptr;
}

std::string_view DtypeOf(const Item& item) {
  if (!item.leaf || !item.leaf->IsObject()) return {};
  const JsonValue* dtype = item.leaf->Find("dtype");
  return dtype && dtype->IsString() ? dtype->Text() : std::string_view();
}

bool IsTensor(const Item* item) { return item && IsMergedDtype(DtypeOf(*item)); }

// Values that are equal, by the first cell that has them.
std::vector<std::vector<size_t>> Clusters(const std::vector<TensorStats>& parts) {
  std::vector<std::vector<size_t>> out;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto it =
        std::find_if(out.begin(), out.end(), [&](const auto& c) { return SameStats(parts[c[0]], parts[i]); });
    if (it == out.end()) {
      out.push_back({i});
    } else {
      it->push_back(i);
    }
  }
  return out;
}

std::string Brief(const TensorStats& s) {
  return fmt::format("Max {}, Min {}, Mean {}, Norm {}", s.max.Text(), s.min.Text(), s.mean.Text(), s.norm.Text());
}

void SetStat(const char* key, const StatNumber& v, JsonValue* leaf) {
  if (!v.given()) return;
  if (JsonValue* value = leaf->Find(key))
    *value = v.kind == StatNumber::Kind::kInt ? JsonValue::Of(v.i) : JsonValue::Of(v.d);
}

void ClearStats(JsonValue* leaf) {
  for (const char* key : {"Max", "Min", "Mean", "Norm"}) {
    if (JsonValue* value = leaf->Find(key)) value->SetNull();
  }
}

/// Merges the tensors of one node along the axes of its grid.
class NodeMerger {
 public:
  NodeMerger(std::string_view node, std::string_view parent, const MergeSource& source, const MergeLayout& layout,
             std::vector<int> ranks, Cells* cells, MergeNotes* notes)
      : node_(node),
        parent_(parent),
        source_(source),
        layout_(layout),
        ranks_(std::move(ranks)),
        cells_(*cells),
        notes_(*notes) {}

  void Run() {
    Pass(false);
    if (!any_ && source_.force) {
      notes_.Clear();
      Pass(true);
    }
    std::vector<std::string> head;
    for (size_t a = 0; a < kAxes.size(); ++a) {
      if (merged_[a])
        head.push_back(fmt::format("This data is the merged data after {}, and the data is merged from rank [{}].",
                                   kAxisTitle[a], fmt::join(Group(a, 0), ", ")));
    }
    head.insert(head.end(), in_.begin(), in_.end());
    if (!source_.reduced_name.empty())
      head.push_back("The output of this data is merged from " + source_.reduced_name + ".output.0");
    head.insert(head.end(), out_.begin(), out_.end());
    notes_.info = std::move(head);
  }

 private:
  size_t Size(size_t axis) const { return axis == 0 ? source_.grid.tp : axis == 1 ? source_.grid.cp : source_.grid.ep; }
  size_t Stride(size_t axis) const {
    return axis == 0 ? 1 : axis == 1 ? source_.grid.tp : size_t{source_.grid.tp} * source_.grid.cp;
  }
  std::vector<int> Group(size_t axis, size_t first) const {
    std::vector<int> out;
    for (size_t i = 0; i < Size(axis); ++i) out.push_back(ranks_[first + i * Stride(axis)]);
    return out;
  }

  void Pass(bool force) {
    in_.clear();
    out_.clear();
    merged_.fill(false);
    for (const bool output : {false, true}) {
      for (size_t i = 0; i < cells_.items[0].size(); ++i) {
        const Item& item = cells_.items[0][i];
        if ((item.state == ItemState::kOutput) == output) MergeItem(item, i, force);
      }
    }
  }

  bool IsWhole(const Item& item) const {
    if (source_.whole_input && item.suffix == ".input.0") return true;
    return source_.whole_output && (item.state == ItemState::kOutput || item.suffix == ".parameters.bias");
  }

  void MergeItem(const Item& item, size_t index, bool force) {
    if (!IsTensor(&item)) return;
    std::vector<TensorStats> parts;
    std::vector<const Item*> items;
    const std::string_view dtype = DtypeOf(item);
    for (size_t c = 0; c < cells_.items.size(); ++c) {
      const Item* other = FindItem(cells_.items[c], item.suffix, index);
      if (!IsTensor(other)) return Missing(item, c);
      parts.push_back(TensorStats::Of(*other->leaf));
      items.push_back(other);
    }
    const std::string_view key = std::string_view(item.suffix).substr(1);
    TensorLayout layout = layout_.empty() ? TensorLayout() : layout_.Of(node_, parent_, key);
    const bool open = layout.Of(Axis::kTp) == Share::kAuto && Size(0) > 1;
    const int64_t told = open ? SplitAlong(parts, items) : -1;
    if (told >= 0) layout.share[0] = Share::kSplit;
    CheckDims(layout, key, *item.leaf);
    MergedLeaf leaf{item.suffix, false, ranks_, parts, parts.size(), false, source_.grid.tp};
    auto* target = const_cast<JsonValue*>(item.leaf);  // of a document that is ours
    bool changed = false, partial = false;
    for (size_t a = 0; a < kAxes.size(); ++a) {
      if (Size(a) < 2) continue;
      for (size_t first = 0; first < parts.size(); ++first) {
        if ((first / Stride(a)) % Size(a) != 0 || !IsFirstOf(a, first)) continue;
        changed |= MergeAlong(a, first, layout, key, dtype, force && !IsWhole(item), item, &parts, &partial);
      }
      if (layout.share[a] == Share::kSplit && layout.dim[a] >= 0) MergeShape(a, layout.dim[a], items, target);
    }
    if (told >= 0) Note(item, fmt::format("{}: split along dim {}, by tensor_model_parallel", key, told));
    if (partial) {
      ClearStats(target);
    } else if (changed) {
      SetStats(parts[0], target);
    }
    leaf.split = changed;
    any_ |= changed;
    notes_.leaves.push_back(std::move(leaf));
  }

  /// The dimension along which the framework says on all ranks that a parameter is split; -1: it does not say so.
  static int64_t SplitAlong(const std::vector<TensorStats>& parts, const std::vector<const Item*>& items) {
    // Experts have the attribute, too, and may be whole on each rank.
    if (std::ranges::all_of(parts, [&](const TensorStats& p) { return SameStats(p, parts[0]); })) return -1;
    int64_t dim = -1;
    for (const Item* item : items) {
      const JsonValue* split = item->leaf->Find("tensor_model_parallel");
      const JsonValue* at = item->leaf->Find("partition_dim");
      if (!split || item->leaf->Find("allreduce") || !at || !at->IsInt() || at->Int() < 0) return -1;
      if (dim >= 0 && dim != at->Int()) return -1;
      dim = at->Int();
    }
    return dim;
  }

  // Axes before `axis` are merged already: their first cells stand for them.
  bool IsFirstOf(size_t axis, size_t cell) const {
    for (size_t a = 0; a < axis; ++a)
      if ((cell / Stride(a)) % Size(a) != 0) return false;
    return true;
  }

  bool MergeAlong(size_t axis, size_t first, const TensorLayout& layout, std::string_view key, std::string_view dtype,
                  bool force, const Item& item, std::vector<TensorStats>* parts, bool* partial) {
    std::vector<TensorStats> group;
    for (size_t i = 0; i < Size(axis); ++i) group.push_back((*parts)[first + i * Stride(axis)]);
    const bool same = std::all_of(group.begin(), group.end(), [&](const auto& s) { return SameStats(group[0], s); });
    const bool forced_same = force && axis == 0;
    const bool summed = !source_.reduced.empty() && item.state == ItemState::kOutput;  // it shows the sum already
    const Share share = layout.share[axis] == Share::kPartial && summed ? Share::kReplica : layout.share[axis];
    if (share == Share::kPartial) {
      *partial = true;
      Note(item, fmt::format("{} is a sum of parts of rank [{}]: statistics of summands cannot be merged", key,
                             fmt::join(Group(axis, first), ", ")));
      return false;
    }
    if (share == Share::kReplica) {
      if (!same) (*parts)[first] = Replicas(axis, first, key, layout.line, group);
      return false;
    }
    if (same && !forced_same && share == Share::kAuto) return false;
    if (force || !same || share == Share::kSplit) merged_[axis] = true;
    std::vector<std::string> lines;
    (*parts)[first] = MergeParts(group, dtype, key, &lines);
    if (first == 0)
      for (std::string& line : lines) Note(item, std::move(line));
    return true;
  }

  void Note(const Item& item, std::string line) {
    (item.state == ItemState::kOutput ? out_ : in_).push_back(std::move(line));
  }

  // Ranks should be equal and are not: the value of most of them counts.
  TensorStats Replicas(size_t axis, size_t first, std::string_view key, int line,
                       const std::vector<TensorStats>& group) {
    std::vector<std::vector<size_t>> clusters = Clusters(group);
    std::stable_sort(clusters.begin(), clusters.end(),
                     [](const auto& a, const auto& b) { return a.size() > b.size(); });
    const std::vector<int> ranks = Group(axis, first);
    const bool clear = clusters[0].size() > clusters[1].size();
    MergeFinding finding{FindingKind::kReplica, std::string(node_), std::string(key), {}, {}};
    for (size_t c = clear ? 1 : 0; c < clusters.size(); ++c)
      for (size_t i : clusters[c]) finding.ranks.push_back(ranks[i]);
    std::sort(finding.ranks.begin(), finding.ranks.end());
    const std::string axis_name(AxisName(kAxes[axis]));
    const auto rank_at = [&](size_t c) { return ranks[clusters[c][0]]; };
    const auto value_at = [&](size_t c) { return Brief(group[clusters[c][0]]); };
    finding.text = Msg("{} should be the same on rank [{}] ({}), but rank {} has {} and rank {} has {}", key,
                       fmt::format("{}", fmt::join(ranks, ", ")),
                       line > 0 ? fmt::format("{}, line {}", axis_name, line) : axis_name, rank_at(0), value_at(0),
                       rank_at(1), value_at(1));
    notes_.findings.push_back(finding);
    in_.push_back("finding: " + finding.text.English());
    return group[clusters[0][0]];
  }

  void Missing(const Item& item, size_t cell) {
    if (layout_.empty()) return;
    Find(item.suffix.substr(1), {ranks_[cell]},
         Msg("rank {} has no tensor {} where rank {} has one", ranks_[cell], item.suffix.substr(1), ranks_[0]));
  }

  void CheckDims(const TensorLayout& layout, std::string_view key, const JsonValue& leaf) {
    const JsonValue* shape = leaf.Find("shape");
    if (layout.dims < 0 || !shape || !shape->IsArray() || shape->size() == static_cast<unsigned>(layout.dims)) return;
    Find(key, {},
         Msg("{} has {} dimensions, but line {} of the layout gives it {}", key, shape->size(), layout.line,
             layout.dims));
  }

  void Find(std::string_view key, std::vector<int> ranks, Message text) {
    notes_.findings.push_back(
        {FindingKind::kLayout, std::string(node_), std::string(key), std::move(text), std::move(ranks)});
  }

  void MergeShape(size_t axis, int dim, const std::vector<const Item*>& items, JsonValue* leaf) {
    JsonValue* shape = leaf->Find("shape");
    const auto at = static_cast<unsigned>(dim);
    if (!shape || at >= shape->Items().size()) return;
    JsonValue& own = shape->Items()[at];
    int64_t size = own.Int();
    for (size_t i = 1; i < Size(axis); ++i) {
      const JsonValue* other = items[i * Stride(axis)]->leaf->Find("shape");
      if (!other || !other->IsArray() || at >= other->size() || !(*other)[at].IsInt()) return;
      size += (*other)[at].Int();
    }
    own = JsonValue::Of(size);
  }

  const std::string_view node_, parent_;
  const MergeSource& source_;
  const MergeLayout& layout_;
  const std::vector<int> ranks_;
  Cells& cells_;
  MergeNotes& notes_;
  std::vector<std::string> in_, out_;
  std::array<bool, 3> merged_{};
  bool any_ = false;
};

}  // namespace

const DumpFile& MergedData::Dump(const RankGraph& self, uint32_t rank) const {
  return rank == 0 ? self.files.dump : files[rank - 1].dump;
}

void SetStats(const TensorStats& s, JsonValue* leaf) {
  SetStat("Max", s.max, leaf);
  SetStat("Min", s.min, leaf);
  SetStat("Mean", s.mean, leaf);
  SetStat("Norm", s.norm, leaf);
}

Status MergedData::ReadOp(const RankGraph& self, OpRef ref, JsonDoc* doc) const {
  if (ref.op == kNoIndex) {
    doc->SetNull();
    return OkStatus();
  }
  return Dump(self, ref.rank).ParseOp(ref.op, doc);
}

std::string_view MergedData::NameOf(const RankGraph& self, OpRef ref) const {
  return ref.op == kNoIndex ? std::string_view() : Dump(self, ref.rank).ops()[ref.op].name;
}

// The op of one cell, with the inputs or outputs of another node where the plan says so.
Status MergedData::Assemble(const RankGraph& self, const MergeSource& source, size_t cell, JsonDoc* doc,
                            JsonDoc* other) const {
  MSP_RETURN_IF_ERROR(ReadOp(self, source.input.empty() ? source.cells[cell] : source.input[cell], doc));
  if (!source.input.empty() || !source.output.empty()) {
    MSP_RETURN_IF_ERROR(ReadOp(self, source.output.empty() ? source.cells[cell] : source.output[cell], other));
    if (!doc->IsObject() || !other->IsObject()) return OkStatus();
    doc->Replace("output", std::as_const(*other).Find("output"));
  }
  if (source.reduced.empty() || !doc->IsObject()) return OkStatus();
  MSP_RETURN_IF_ERROR(ReadOp(self, source.reduced[cell], other));
  std::vector<Item> items, results;
  FlattenOp(NameOf(self, source.cells[cell]), *doc, &items);
  FlattenOp(source.reduced_name, *other, &results);
  const auto is_output = [](const Item& i) { return i.state == ItemState::kOutput; };
  const auto to = std::find_if(items.begin(), items.end(), is_output);
  const auto from = std::find_if(results.begin(), results.end(), is_output);
  if (to == items.end() || from == results.end() || !IsTensor(&*to) || !IsTensor(&*from)) return OkStatus();
  SetStats(TensorStats::Of(*from->leaf), const_cast<JsonValue*>(to->leaf));
  return OkStatus();
}

/// The tensors of the same call on other ranks: what they are to the own ones is seen in a comparison.
Status MergedData::ReadPeers(const RankGraph& self, OpRef own, const JsonValue& doc, std::span<const OpRef> others,
                             size_t near, std::vector<MergedLeaf>* leaves) const {
  std::vector<Item> items, theirs;
  FlattenOp(NameOf(self, own), doc, &items);
  for (const Item& item : items) {
    if (IsTensor(&item)) leaves->push_back({item.suffix, false, {}, {TensorStats::Of(*item.leaf)}, 1, true});
  }
  JsonDoc other;
  for (size_t p = 0; p < others.size(); ++p) {
    MSP_RETURN_IF_ERROR(ReadOp(self, others[p], &other));
    if (!other.IsObject()) continue;
    theirs.clear();
    FlattenOp(NameOf(self, others[p]), other, &theirs);
    for (size_t i = 0; i < leaves->size(); ++i) {
      MergedLeaf& leaf = (*leaves)[i];
      const Item* item = FindItem(theirs, leaf.suffix, i);
      if (IsTensor(item)) leaf.parts.push_back(TensorStats::Of(*item->leaf));
      if (p < near && IsTensor(item)) ++leaf.cells;
    }
  }
  return OkStatus();
}

Status MergedData::Read(const RankGraph& self, uint32_t node, JsonDoc* doc, MergeNotes* notes) const {
  notes->Clear();
  const MergeSource& source = sources[node];
  if (source.cells.empty() || source.cells[0].op == kNoIndex) {
    doc->SetNull();
    return OkStatus();
  }
  thread_local JsonDoc other;
  MSP_RETURN_IF_ERROR(Assemble(self, source, 0, doc, &other));
  const auto others = [](const std::vector<OpRef>& refs) { return std::span(refs).subspan(refs.empty() ? 0 : 1); };
  if (!source.peers.empty()) {
    return ReadPeers(self, source.cells[0], *doc, others(source.peers), source.near_peers - 1, &notes->leaves);
  }
  const auto read_shares = [&] {
    for (const OpRef& cell : source.cells) {
      if (source.of_expert) notes->holders.push_back(ranks[cell.rank]);
    }
    return source.shares.empty() ? OkStatus()
                                 : ReadPeers(self, source.cells[0], *doc, source.shares, 0, &notes->shares);
  };
  if (source.grid.cells() < 2 || source.cells.size() < 2) return read_shares();
  thread_local Cells cells;
  std::vector<int> at;
  if (cells.docs.size() < source.cells.size()) cells.docs.resize(source.cells.size());
  cells.items.resize(source.cells.size());
  for (auto& items : cells.items) items.clear();
  for (size_t c = 0; c < source.cells.size(); ++c) {
    if (c > 0) MSP_RETURN_IF_ERROR(Assemble(self, source, c, &cells.docs[c], &other));
    const JsonValue& op = c == 0 ? static_cast<const JsonValue&>(*doc) : cells.docs[c];
    FlattenOp(NameOf(self, source.cells[c]), op, &cells.items[c]);
    at.push_back(ranks[source.cells[c].rank]);
  }
  const Node& n = self.graph.nodes[node];
  const std::string_view parent = n.parent == kNoIndex ? std::string_view() : self.graph.nodes[n.parent].name;
  NodeMerger(n.name, parent, source, layout, std::move(at), &cells, notes).Run();
  return read_shares();
}

std::vector<const RankFiles*> FilesOf(const RankGraph& rank) {
  std::vector<const RankFiles*> out{&rank.files};
  if (!rank.merged) return out;
  for (const RankFiles& files : rank.merged->files) out.push_back(&files);
  return out;
}

OpDifference CompareOps(std::string_view name, const JsonValue& a, const JsonValue& b) {
  OpDifference out;
  std::vector<Item> left, right;
  FlattenOp(name, a, &left);
  FlattenOp(name, b, &right);
  for (size_t i = 0; i < left.size(); ++i) {
    if (!IsTensor(&left[i])) continue;
    const Item* other = FindItem(right, left[i].suffix, i);
    if (!IsTensor(other) || SameStats(TensorStats::Of(*left[i].leaf), TensorStats::Of(*other->leaf))) continue;
    (left[i].state == ItemState::kOutput ? out.output : out.input) = true;
  }
  return out;
}

double MergedLeaf::Elements() const {
  double out = 0;
  for (const TensorStats& p : parts) out += p.elements;
  return split ? out : parts.empty() ? -1 : parts[0].elements;
}

std::vector<int> MergedData::Suspects(const MergedLeaf& leaf, const TensorStats& golden) {
  if (leaf.parts.size() < 2 || !golden.norm.given() || golden.elements <= 0) return {};
  const double norm = golden.norm.value(), mean_square = norm * norm / golden.elements;
  std::vector<std::pair<double, int>> score;
  for (size_t i = 0; i < leaf.parts.size(); ++i) {
    const TensorStats& p = leaf.parts[i];
    if (!p.norm.given() || p.elements <= 0) return {};
    double s = 0;
    if (!leaf.split) {
      s = SameStats(p, golden) ? 0 : std::fabs(p.norm.value() - norm) + std::fabs(p.max.value() - golden.max.value());
    } else {
      const double own = p.norm.value() * p.norm.value() / p.elements;
      s = std::isnan(own) || std::isinf(own) ? HUGE_VAL : std::fabs(own - mean_square);
      // What lies outside of the range of the whole is not a part of it.
      const double slack = 1e-3 * (golden.max.value() - golden.min.value());
      if (p.max.value() > golden.max.value() + slack || p.min.value() < golden.min.value() - slack)
        s += 4 * mean_square;
    }
    score.emplace_back(s, leaf.ranks[i]);
  }
  std::sort(score.begin(), score.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (score[0].first <= 0 || score[0].first < 2 * score[1].first) return {};
  // Of copies one must be right: where none is, all ranks did it, one by more than the others.
  if (!leaf.split && score.back().first > kRight * score[0].first) return {};
  return {score[0].second};
}

}  // namespace msprobe
