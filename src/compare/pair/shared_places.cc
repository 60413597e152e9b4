#include "compare/pair/shared_places.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "compare/pair/module_tree.h"
#include "compare/values/item_views.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

constexpr double kRoom = 4;  // tolerances that a sum of shares may be off by

/// What the tensors of an op look like that have one state, in their order, and their statistics.
struct Tensors {
  std::vector<std::string> prints;
  std::vector<std::array<double, kStatCount>> stats;
};

StatusOr<Tensors> TensorsOf(const DumpFile& dump, size_t op, ItemState state) {
  Tensors out;
  ItemViews items(dump, CompareMode::kStatistics);
  MSP_RETURN_IF_ERROR(items.Read(op));
  for (const ItemView& item : items.items()) {
    if (item.state != state || !item.tensor) continue;
    out.prints.push_back(PrintOf(item));
    std::array<double, kStatCount>& stats = out.stats.emplace_back();
    for (size_t k = 0; k < kStatCount; ++k) stats[k] = item.stats[k].IsNumber() ? item.stats[k].AsDouble() : NAN;
  }
  return out;
}

/// The gradients of one side at the places of one tensor.
class Places {
 public:
  Places(const Tensors& gradients, const std::vector<size_t>& places) : gradients_(gradients), places_(places) {}

  const std::array<double, kStatCount>& First() const { return gradients_.stats[places_.front()]; }
  bool Alike() const {
    return std::ranges::all_of(places_,
                               [&](size_t p) { return gradients_.prints[p] == gradients_.prints[places_.front()]; });
  }
  double Sum(Stat k) const {
    double out = 0;
    for (const size_t p : places_) out += gradients_.stats[p][k];
    return out;
  }
  /// Whether these are whole, and `shares` the parts that they are made of.
  bool AreWholeOf(const Places& shares, double tolerance) const {
    const auto& whole = First();
    const double size = std::max(std::fabs(shares.Sum(kMax)), std::fabs(shares.Sum(kMin)));
    const double room = kRoom * tolerance * size, norm_room = kRoom * tolerance * shares.Sum(kNorm);
    if (!Alike() || !(size > 0) || !(std::fabs(whole[kMean] - shares.Sum(kMean)) <= room)) return false;
    if (whole[kMax] > shares.Sum(kMax) + room || whole[kMin] < shares.Sum(kMin) - room) return false;
    if (whole[kNorm] > shares.Sum(kNorm) + norm_room) return false;
    if (!shares.Alike()) return true;
    return std::fabs(whole[kMax] - shares.Sum(kMax)) <= room && std::fabs(whole[kMin] - shares.Sum(kMin)) <= room &&
           std::fabs(whole[kNorm] - shares.Sum(kNorm)) <= norm_room;
  }
  bool Agree(const Places& other, double tolerance) const {
    for (size_t i = 0; i < places_.size(); ++i) {
      const auto &a = gradients_.stats[places_[i]], &b = other.gradients_.stats[other.places_[i]];
      const double size = std::max(std::fabs(b[kMax]), std::fabs(b[kMin]));
      for (const Stat k : {kMax, kMin, kMean, kNorm}) {
        if (!(std::fabs(a[k] - b[k]) <= tolerance * (k == kNorm ? std::fabs(b[k]) : size))) return false;
      }
    }
    return true;
  }

 private:
  const Tensors& gradients_;
  const std::vector<size_t>& places_;
};

/// The places of each tensor that both runs give.
std::vector<std::vector<size_t>> PlacesOf(const Tensors& target, const Tensors& golden) {
  std::vector<std::vector<size_t>> out;
  for (size_t i = 0; i < target.prints.size(); ++i) {
    const auto known = std::ranges::find_if(out, [&](const std::vector<size_t>& places) {
      return target.prints[places.front()] == target.prints[i] && golden.prints[places.front()] == golden.prints[i];
    });
    if (known == out.end()) {
      out.push_back({i});
    } else {
      known->push_back(i);
    }
  }
  return out;
}

}  // namespace

StatusOr<bool> IsWholeAtEachPlace(const DumpPair& pair, size_t op, uint32_t partner, double tolerance) {
  const DumpFile &target = *pair.target, &golden = *pair.golden;
  const NameParts name = ParseOpName(target.ops().NameAt(op));
  if (name.direction != OpDirection::kBackward || IsModuleName(name.full) || partner == kNoOp) return false;
  const auto forward = target.FindOp(ForwardNameOf(name));
  const auto other = golden.FindOp(ForwardNameOf(ParseOpName(golden.ops().NameAt(partner))));
  if (!forward || !other) return false;
  MSP_ASSIGN_OR_RETURN(const Tensors ours, TensorsOf(target, *forward, ItemState::kInput));
  MSP_ASSIGN_OR_RETURN(const Tensors theirs, TensorsOf(golden, *other, ItemState::kInput));
  MSP_ASSIGN_OR_RETURN(const Tensors given, TensorsOf(target, op, ItemState::kOutput));
  MSP_ASSIGN_OR_RETURN(const Tensors wanted, TensorsOf(golden, partner, ItemState::kOutput));
  const size_t count = ours.prints.size();
  if (theirs.prints.size() != count || given.prints.size() != count || wanted.prints.size() != count) return false;
  bool whole = false;
  for (const std::vector<size_t>& places : PlacesOf(ours, theirs)) {
    const Places a(given, places), b(wanted, places);
    if (a.Agree(b, tolerance)) continue;
    if (places.size() < 2 || (!a.AreWholeOf(b, tolerance) && !b.AreWholeOf(a, tolerance))) return false;
    whole = true;
  }
  return whole;
}

}  // namespace msprobe
