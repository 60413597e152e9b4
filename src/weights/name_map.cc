#include "weights/name_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "base/message.h"
#include "base/text.h"
#include "tensor/kernels/stats.h"
#include "weights/match_values.h"
#include "weights/pair_shapes.h"
#include "weights/role_words.h"
#include "weights/roles.h"

namespace msprobe {
namespace {

bool IsTable(const std::string& name) {
  const std::string what = ParseWeightName(name).what;
  return what == "embed" || what == "head";
}

/// Zeros of a bias and ones of a norm are no proof that two weights are one.
bool IsConstant(const WeightTensor& t) {
  const size_t size = ElementSize(t.dtype);
  const auto count = static_cast<size_t>(std::min<int64_t>(t.elements(), 4096));
  std::vector<char> bytes(count * size);
  GatherElements(t, 0, static_cast<int64_t>(count), bytes.data());
  return count == 0 || std::equal(bytes.begin() + static_cast<std::ptrdiff_t>(size), bytes.end(), bytes.begin());
}

/// One side of the matching: its parts, and which of them have a partner.
struct Side {
  Checkpoint* checkpoint;
  std::vector<RoleTensor> parts;          // of tensors without a partner of the same name
  std::vector<bool> taken;                // by index into Checkpoint::tensors
  std::unordered_set<std::string> apart;  // labels that are not to be paired
};

class WeightMatcher {
 public:
  WeightMatcher(Checkpoint* a, Checkpoint* b, bool values) : values_(values) {
    sides_[0].checkpoint = a;
    sides_[1].checkpoint = b;
    for (Side& side : sides_) side.taken.assign(side.checkpoint->tensors.size(), false);
  }

  Status Run(const MapFile* file, NameMap* out) {
    out_ = out;
    if (file) MSP_RETURN_IF_ERROR(ByFile(*file));
    ByName();
    for (Side& side : sides_) {
      std::vector<RoleTensor> all = RolesOf(*side.checkpoint);
      for (RoleTensor& part : all) {
        if (!side.taken[part.source] && !used_.contains(Key(side, part.tensor))) side.parts.push_back(std::move(part));
      }
    }
    ByRole();
    Tied();
    Tied();  // the bias of a table that is tied by now
    if (values_) {
      WholeByValues();
      ByValues();
    }
    for (size_t s = 0; s < 2; ++s) {
      for (RoleTensor& part : sides_[s].parts) (s == 0 ? out->only_a : out->only_b).push_back(std::move(part.tensor));
      for (WeightTensor& t : apart_[s]) (s == 0 ? out->only_a : out->only_b).push_back(std::move(t));
    }
    std::stable_sort(out->pairs.begin(), out->pairs.end(),
                     [](const WeightPair& x, const WeightPair& y) { return x.source_a < y.source_a; });
    return OkStatus();
  }
  const std::vector<size_t>& norms() const { return norms_; }

 private:
  std::string Key(const Side& side, const WeightTensor& t) const {
    return (&side == sides_.data() ? "a" : "b") + t.label();
  }

  void AddPair(WeightPair pair, bool norm) {
    if (norm) norms_.push_back(pair.source_a);
    out_->pairs.push_back(std::move(pair));
  }

  Status ByFile(const MapFile& file) {
    std::array<std::unordered_map<std::string, RoleTensor>, 2> known;
    for (size_t s = 0; s < 2; ++s) {
      const Checkpoint& c = *sides_[s].checkpoint;
      for (RoleTensor& part : RolesOf(c)) known[s].emplace(part.tensor.label(), part);
      for (size_t i = 0; i < c.tensors.size(); ++i)
        known[s].emplace(c.tensors[i].label(), RoleTensor{"", c.tensors[i], false, false, i});
    }
    for (size_t s = 0; s < 2; ++s) {
      for (const std::string& label : s == 0 ? file.only_a : file.only_b) {
        const auto found = known[s].find(label);
        if (found == known[s].end()) continue;
        used_.insert(Key(sides_[s], found->second.tensor));
        if (found->second.tensor.part.empty()) sides_[s].taken[found->second.source] = true;
        apart_[s].push_back(found->second.tensor);
      }
    }
    for (const auto& [a, b] : file.pairs) {
      const auto in_a = known[0].find(a), in_b = known[1].find(b);
      if (in_a == known[0].end() || in_b == known[1].end()) {
        const bool first = in_a == known[0].end();
        return BadInput(Msg("the map names {}, which {} does not hold: correct the map", OneLine(first ? a : b),
                            sides_[first ? 0 : 1].checkpoint->path));
      }
      for (const auto& [s, part] : {std::pair{size_t{0}, &in_a->second}, {size_t{1}, &in_b->second}}) {
        used_.insert(Key(sides_[s], part->tensor));
        if (part->tensor.part.empty()) sides_[s].taken[part->source] = true;
      }
      WeightPair pair{in_a->second.tensor, in_b->second.tensor, MatchedBy::kFile, true, "",
                      in_a->second.source, in_b->second.source};
      BringTogether(&pair, true);
      AddPair(std::move(pair), false);
    }
    return OkStatus();
  }

  void ByName() {
    std::unordered_map<std::string_view, size_t> in_b;
    const Checkpoint &a = *sides_[0].checkpoint, &b = *sides_[1].checkpoint;
    for (size_t i = 0; i < b.tensors.size(); ++i) in_b.emplace(b.tensors[i].name, i);
    for (size_t i = 0; i < a.tensors.size(); ++i) {
      const auto found = in_b.find(a.tensors[i].name);
      if (sides_[0].taken[i] || found == in_b.end() || sides_[1].taken[found->second]) continue;
      WeightPair pair{a.tensors[i], b.tensors[found->second], MatchedBy::kName, true, "", i, found->second};
      if (Squeezed(pair.a).shape != Squeezed(pair.b).shape || !BringTogether(&pair, false)) continue;
      sides_[0].taken[i] = sides_[1].taken[found->second] = true;
      const bool norm = pair.a.shape.size() == 1 && a.tensors[i].name.find("norm") != std::string::npos &&
                        a.tensors[i].name.ends_with("weight");
      AddPair(std::move(pair), norm);
    }
  }

  void ByRole() {
    std::unordered_map<std::string_view, std::pair<size_t, size_t>> in_b;  // where, and how often
    for (size_t i = 0; i < sides_[1].parts.size(); ++i) {
      auto& entry = in_b[sides_[1].parts[i].role];
      entry = {i, entry.second + 1};
    }
    std::unordered_map<std::string_view, size_t> count;
    for (const RoleTensor& part : sides_[0].parts) ++count[part.role];
    std::vector<bool> done_a(sides_[0].parts.size()), done_b(sides_[1].parts.size());
    for (size_t i = 0; i < sides_[0].parts.size(); ++i) {
      const RoleTensor& part = sides_[0].parts[i];
      const auto found = in_b.find(part.role);
      if (found == in_b.end() || found->second.second != 1 || count[part.role] != 1) continue;
      const RoleTensor& other = sides_[1].parts[found->second.first];
      WeightPair pair{part.tensor, other.tensor, MatchedBy::kRole, true, "", part.source, other.source};
      if (!BringTogether(&pair, part.table)) pair.note = "shapes differ";
      done_a[i] = done_b[found->second.first] = true;
      AddPair(std::move(pair), part.norm);
    }
    Drop(done_a, &sides_[0].parts);
    Drop(done_b, &sides_[1].parts);
  }

  static void Drop(const std::vector<bool>& done, std::vector<RoleTensor>* parts) {
    std::vector<RoleTensor> left;
    for (size_t i = 0; i < done.size(); ++i) {
      if (!done[i]) left.push_back(std::move((*parts)[i]));
    }
    *parts = std::move(left);
  }

  /// A weight that one side does not store is the one that it is tied to.
  void Tied() {
    for (size_t s = 0; s < 2; ++s) {
      std::vector<bool> done(sides_[s].parts.size());
      for (size_t i = 0; i < done.size(); ++i) {
        const RoleTensor& part = sides_[s].parts[i];
        WeightPair* twin = Twin(s, part);
        if (!twin) continue;
        WeightPair pair = *twin;
        (s == 0 ? pair.a : pair.b) = part.tensor;
        (s == 0 ? pair.source_a : pair.source_b) = part.source;
        pair.by = MatchedBy::kTied;
        pair.note.clear();
        if (!BringTogether(&pair, true)) continue;
        done[i] = true;
        tied_modules_.insert(ModuleOf(part.tensor));
        AddPair(std::move(pair), false);
      }
      Drop(done, &sides_[s].parts);
    }
  }

  static std::string ModuleOf(const WeightTensor& t) { return t.name.substr(0, t.name.rfind('.')); }

  /// The pair of the weight that `part` is tied to: it lies in the same bytes, or is the table of words of a model that
  /// says that its tables are tied, or has the bits of a table, or of another weight of a model that says so.
  WeightPair* Twin(size_t s, const RoleTensor& part) {
    const auto& facts_a = sides_[0].checkpoint->facts;
    const auto& facts_b = sides_[1].checkpoint->facts;
    const bool says = facts_a.tied.value_or(false) || facts_b.tied.value_or(false);
    if (part.tensor.blocks.empty()) return nullptr;
    for (WeightPair& pair : out_->pairs) {
      const WeightTensor& own = s == 0 ? pair.a : pair.b;
      if (own.blocks.empty() || own.shape.size() != part.tensor.shape.size()) continue;
      const bool same_bytes =
          own.blocks[0].data == part.tensor.blocks[0].data && own.shape == part.tensor.shape && own.part.empty();
      const bool table = says && part.table && IsTable(own.name);
      if (same_bytes || table) return &pair;
    }
    for (WeightPair& pair : out_->pairs) {
      const WeightTensor& own = s == 0 ? pair.a : pair.b;
      const bool plain = own.part.empty() && own.plus == 0 && !own.transposed && own.shape == part.tensor.shape;
      if (!plain || own.name == part.tensor.name) continue;
      const bool may = IsTable(own.name) || tied_modules_.contains(ModuleOf(part.tensor)) || (says && !IsConstant(own));
      if (may && HaveSameBits(own, part.tensor)) return &pair;
    }
    return nullptr;
  }
  /// Tensors as they are stored, none of whose parts has a partner.
  std::vector<RoleTensor> Wholes(size_t s) const {
    const Checkpoint& c = *sides_[s].checkpoint;
    std::vector<int64_t> left(c.tensors.size(), 0);
    for (const RoleTensor& part : sides_[s].parts) left[part.source] += part.tensor.elements();
    std::vector<RoleTensor> out;
    for (size_t i = 0; i < left.size(); ++i) {
      const bool all = left[i] > 0 && left[i] == c.tensors[i].elements();
      if (all) out.push_back({"", c.tensors[i], false, false, i});
    }
    return out;
  }

  void WholeByValues() {
    const std::array<std::vector<RoleTensor>, 2> wholes{Wholes(0), Wholes(1)};
    std::array<std::unordered_set<size_t>, 2> done;
    for (const ValueMatch& match : MatchByValues(wholes[0], wholes[1], false)) {
      const RoleTensor &a = wholes[0][match.a], &b = wholes[1][match.b];
      WeightPair pair{a.tensor, b.tensor, match.by, true, "", a.source, b.source};
      if (!BringTogether(&pair, false)) continue;
      done[0].insert(a.source);
      done[1].insert(b.source);
      AddPair(std::move(pair), false);
    }
    for (size_t s = 0; s < 2; ++s)
      std::erase_if(sides_[s].parts, [&](const RoleTensor& part) { return done[s].contains(part.source); });
  }

  void ByValues() {
    std::vector<bool> done_a(sides_[0].parts.size()), done_b(sides_[1].parts.size());
    for (const ValueMatch& match : MatchByValues(sides_[0].parts, sides_[1].parts, true)) {
      const RoleTensor &a = sides_[0].parts[match.a], &b = sides_[1].parts[match.b];
      WeightPair pair{a.tensor, b.tensor, match.by, true, "", a.source, b.source};
      if (!BringTogether(&pair, false)) continue;
      done_a[match.a] = done_b[match.b] = true;
      AddPair(std::move(pair), false);
    }
    Drop(done_a, &sides_[0].parts);
    Drop(done_b, &sides_[1].parts);
  }

  bool values_;
  std::array<Side, 2> sides_;
  std::array<std::vector<WeightTensor>, 2> apart_;
  std::unordered_set<std::string> used_;  // labels, behind "a" or "b"
  std::unordered_set<std::string> tied_modules_;
  std::vector<size_t> norms_;  // source_a of scales of norms
  NameMap* out_ = nullptr;
};

double MeanOf(const WeightTensor& t) {
  constexpr int64_t kMost = 4096;
  const int64_t count = std::min(t.elements(), kMost);
  std::vector<char> bytes(static_cast<size_t>(count) * ElementSize(t.dtype));
  GatherElements(t, 0, count, bytes.data());
  Stats stats;
  const int64_t shape[] = {count};
  return ComputeStats({bytes.data(), t.dtype, 1, shape, nullptr}, &stats) ? stats.mean : NAN;
}

/// Adds what fits to two checkpoints whose norms are centred on different values.
void AlignNorms(const Checkpoint& a, const Checkpoint& b, const std::vector<size_t>& norms, bool values, NameMap* map) {
  constexpr double kNearOne = 0.2;
  std::vector<WeightPair*> pairs;
  for (WeightPair& pair : map->pairs) {
    const bool norm = std::find(norms.begin(), norms.end(), pair.source_a) != norms.end();
    if (norm && pair.same_shape && pair.a.elements() > 0 && IsFloating(pair.a.dtype) && IsFloating(pair.b.dtype))
      pairs.push_back(&pair);
  }
  if (pairs.empty()) return;
  double side = 0;  // 1: those of B are centred on zero
  if (a.facts.zero_centred && b.facts.zero_centred) {
    side = static_cast<double>(*b.facts.zero_centred) - static_cast<double>(*a.facts.zero_centred);
  } else if (values) {
    // Nothing says so, but all norms of one side lie one below those of the other.
    double least = INFINITY, most = -INFINITY;
    for (const WeightPair* pair : pairs) {
      const double apart = MeanOf(pair->a) - MeanOf(pair->b);
      least = std::min(least, apart);
      most = std::max(most, apart);
    }
    if (least > 1 - kNearOne && most < 1 + kNearOne) side = 1;
    if (least > -1 - kNearOne && most < -1 + kNearOne) side = -1;
  }
  if (side == 0) return;
  for (WeightPair* pair : pairs) {
    (side > 0 ? pair->b : pair->a).plus = 1;
    pair->note += std::string(pair->note.empty() ? "" : ", ") + "1 added to " + (side > 0 ? "B" : "A");
  }
  map->notes.push_back(
      Msg("the norms of {} are centred on zero (layernorm_1p): 1 is added to them", side > 0 ? b.path : a.path));
}

}  // namespace

void LeaveOutCounts(const Checkpoint& a, const Checkpoint& b, NameMap* map) {
  constexpr std::string_view kCount = ".num_batches_tracked";
  for (const bool first : {true, false}) {
    const Checkpoint& other = first ? b : a;
    const bool never = other.format.starts_with("MindSpore") ||
                       std::any_of(other.tensors.begin(), other.tensors.end(),
                                   [](const WeightTensor& t) { return t.name.ends_with("moving_mean"); });
    const size_t left = never ? std::erase_if(first ? map->only_a : map->only_b,
                                              [&](const WeightTensor& t) { return t.name.ends_with(kCount); })
                              : 0;
    if (left == 0) continue;
    map->notes.push_back(Msg("{} counts of batches (num_batches_tracked) are in {} only: MindSpore keeps none", left,
                             first ? "A" : "B"));
  }
}

void FillFacts(ModelFacts* to, const ModelFacts& from) {
  for (const auto member : {&ModelFacts::heads, &ModelFacts::groups, &ModelFacts::head_dim, &ModelFacts::hidden,
                            &ModelFacts::ffn, &ModelFacts::experts}) {
    if (to->*member == 0) to->*member = from.*member;
  }
}

StatusOr<NameMap> MatchWeights(Checkpoint* a, Checkpoint* b, const MapFile* file, bool values) {
  FillFacts(&a->facts, b->facts);
  FillFacts(&b->facts, a->facts);
  NameMap out;
  WeightMatcher matcher(a, b, values);
  MSP_RETURN_IF_ERROR(matcher.Run(file, &out));
  AlignNorms(*a, *b, matcher.norms(), values, &out);
  return out;
}

}  // namespace msprobe
