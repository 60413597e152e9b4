#include "diagnose/story/parted_copies.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "base/page_trim.h"
#include "base/parallel.h"
#include "base/text.h"
#include "compare/describe/item_difference.h"
#include "compare/values/item_views.h"
#include "ops/op_name.h"

namespace msprobe {
namespace {

constexpr size_t kMostLookedAt = 20000;  // modules of a rank
constexpr double kClear = 10;            // so much more than what rounding moved the others by

struct Copy {
  std::string key;  // op and item
  std::string looks, golden_looks;
  std::string norm, golden_norm;
  double error = 0;  // relative
  size_t op = 0;
  std::string name, item;
};

double NumberOf(const StatValue& v) { return v.IsNumber() ? v.AsDouble() : 0; }

/// Of the statistics, against the largest magnitude; of norms against the norm.
double ErrorOf(const ItemView& a, const ItemView& b) {
  double out = 0;
  for (const Stat k : {kMax, kMin, kMean, kNorm}) {
    const double scale = k == kNorm ? std::fabs(NumberOf(b.stats[k])) : Amplitude(b);
    const double apart = std::fabs(NumberOf(a.stats[k]) - NumberOf(b.stats[k]));
    if (apart > 0 && scale > 0) out = std::max(out, apart / scale);
  }
  return out;
}

/// The parameters of a rank, by the first forward call of their modules.
StatusOr<std::vector<Copy>> CopiesOf(const FilePair& files) {
  MSP_ASSIGN_OR_RETURN(const DumpFile target, DumpFile::Open(files.target));
  MSP_ASSIGN_OR_RETURN(const DumpFile golden, DumpFile::Open(files.golden));
  ItemViews ours(target, CompareMode::kStatistics), theirs(golden, CompareMode::kStatistics);
  std::vector<Copy> out;
  size_t seen = 0;
  for (size_t i = 0; i < target.ops().size() && seen < kMostLookedAt; ++i) {
    const std::string_view name = target.ops().NameAt(i);
    if (!IsModuleName(name) || !EndsWith(name, ".forward.0")) continue;
    if (++seen % kStepsBetweenTrims == 0) TrimMaps();
    const auto partner = golden.FindOp(name);
    if (!partner) continue;
    MSP_RETURN_IF_ERROR(ours.Read(i));
    MSP_RETURN_IF_ERROR(theirs.Read(*partner));
    for (const ItemView& item : ours.items()) {
      const std::string looks = item.state == ItemState::kParameter ? LooksOf(item) : std::string();
      const auto other = std::ranges::find(theirs.items(), item.suffix, &ItemView::suffix);
      if (looks.empty() || other == theirs.items().end()) continue;
      Copy copy{std::string(name) + item.suffix, looks, LooksOf(*other), {}, {}, ErrorOf(item, *other), i, {}, {}};
      item.stats[kNorm].AppendText(&copy.norm);
      other->stats[kNorm].AppendText(&copy.golden_norm);
      copy.name = name;
      copy.item = item.suffix;
      out.push_back(std::move(copy));
    }
  }
  return out;
}

/// As the target had it a step before; "" where that is not known.
StatusOr<std::string> LooksBefore(const Copy& copy, int rank, const std::vector<FilePair>& before) {
  const auto files = std::ranges::find(before, rank, &FilePair::rank);
  if (files == before.end()) return std::string();
  MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(files->target));
  const auto at = dump.FindOp(copy.name);
  if (!at) return std::string();
  ItemViews items(dump, CompareMode::kStatistics);
  MSP_RETURN_IF_ERROR(items.Read(*at));
  const auto item = std::ranges::find(items.items(), copy.item, &ItemView::suffix);
  return item == items.items().end() ? std::string() : LooksOf(*item);
}

class Parting {
 public:
  Parting(const std::vector<FilePair>& now, const std::vector<FilePair>& before) : now_(now), before_(before) {}

  StatusOr<std::optional<Origin>> Find() {
    std::vector<std::vector<Copy>> copies(now_.size());
    MSP_RETURN_IF_ERROR(ParallelFor(now_.size(), [&](size_t r) -> Status {
      MSP_ASSIGN_OR_RETURN(copies[r], CopiesOf(now_[r]));
      return OkStatus();
    }));
    std::map<std::string_view, size_t> known;
    for (size_t r = 0; r < copies.size(); ++r) {
      for (const Copy& copy : copies[r]) {
        const auto [it, fresh] = known.emplace(copy.key, groups_.size());
        if (fresh) groups_.emplace_back();
        groups_[it->second].push_back({r, &copy});
      }
    }
    double rounded = 0;
    std::vector<Group> parted;
    for (const Group& group : groups_) {
      for (const Group& same : AlikeInGolden(group)) {
        const bool part =
            std::ranges::any_of(same, [&](const auto& c) { return c.second->looks != same.front().second->looks; });
        if (part) parted.push_back(same);
        for (const auto& [rank, copy] : same) rounded = part ? rounded : std::max(rounded, copy->error);
      }
    }
    for (const Group& group : parted) {
      const bool apart = std::ranges::any_of(group, [&](const auto& c) { return c.second->error > kClear * rounded; });
      if (!apart) continue;
      MSP_ASSIGN_OR_RETURN(const bool together, WereTogether(group));
      if (together) return std::optional<Origin>(OriginOf(group, kClear * rounded));
    }
    return std::optional<Origin>();
  }

 private:
  using Group = std::vector<std::pair<size_t, const Copy*>>;  // by the positions of ranks

  static std::vector<Group> AlikeInGolden(const Group& group) {
    std::vector<Group> out;
    for (const auto& one : group) {
      const auto like = std::ranges::find_if(
          out, [&](const Group& g) { return g.front().second->golden_looks == one.second->golden_looks; });
      (like == out.end() ? out.emplace_back() : *like).push_back(one);
    }
    return out;
  }

  StatusOr<bool> WereTogether(const Group& group) const {
    std::string first;
    for (const auto& [rank, copy] : group) {
      MSP_ASSIGN_OR_RETURN(const std::string looks, LooksBefore(*copy, now_[rank].rank, before_));
      if (looks.empty() || (!first.empty() && looks != first)) return false;
      first = looks;
    }
    return true;
  }

  Origin OriginOf(const Group& group, double room) const {
    Origin out;
    const auto worst = std::ranges::max_element(group, {}, [](const auto& c) { return c.second->error; });
    const Copy& copy = *worst->second;
    for (const auto& [rank, one] : group) {
      out.difference.copies.push_back(now_[rank].rank);
      if (one->error > room) out.ranks.push_back(now_[rank].rank);
    }
    out.rank = now_[worst->first].rank;
    out.target_dump = now_[worst->first].target;
    out.golden_dump = now_[worst->first].golden;
    FirstDifference& d = out.difference;
    d.kind = FirstDifference::Kind::kParameter;
    d.op = copy.op;
    d.name = d.golden_name = copy.name;
    d.item = copy.item;
    d.parameter = copy.item.substr(copy.item.rfind('.') + 1);
    d.difference = {"Norm", copy.norm, copy.golden_norm, 100 * copy.error};
    d.verdict = RulerVerdict::kSuspicious;
    return out;
  }

  const std::vector<FilePair>&now_, &before_;
  std::vector<Group> groups_;
};

}  // namespace

StatusOr<std::optional<Origin>> PartedCopy(const std::vector<FilePair>& now, const std::vector<FilePair>& before) {
  if (now.size() < 2 || before.empty()) return std::optional<Origin>();
  return Parting(now, before).Find();
}

}  // namespace msprobe
