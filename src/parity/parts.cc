#include "parity/parts.h"

#include <algorithm>
#include <optional>

namespace msprobe {
namespace {

int64_t PlaceIn(const std::vector<int>& group, int rank) {
  return std::find(group.begin(), group.end(), rank) - group.begin();
}

/// Reads what placements call a sum, or a mean, over ranks as that.
void AddUp(RankParts* parts) {
  if (parts->size() == 0) return;
  const ParityEntry& first = *parts->entries.front();
  const bool alike = std::all_of(parts->entries.begin(), parts->entries.end(), [&](const ParityEntry* entry) {
    return entry->partial == first.partial && entry->mean == first.mean && entry->shape == first.shape;
  });
  std::vector<std::string> over = first.partial;
  over.insert(over.end(), first.mean.begin(), first.mean.end());
  if (over.empty() || !alike) return;
  double divisor = 1;
  for (const std::string& axis : first.mean) {
    const auto group = parts->ranks.front()->axes.find(axis);
    if (group != parts->ranks.front()->axes.end()) divisor *= static_cast<double>(group->second.size());
  }
  std::vector<std::vector<double>> sums(parts->size());
  for (size_t i = 0; i < parts->size(); ++i) {
    sums[i].resize(parts->values[i].size());
    for (size_t j = 0; j < parts->size(); ++j) {
      if (!SameBut(*parts->ranks[i], *parts->ranks[j], over)) continue;
      for (size_t e = 0; e < sums[i].size(); ++e) sums[i][e] += parts->values[j][e] / divisor;
    }
  }
  parts->values = std::move(sums);
}

}  // namespace

RankParts PartsOf(const ParityRun& run, int step, const std::string& phase, const std::string& name) {
  RankParts parts;
  for (const ParityRank& rank : run) {
    const ParityEntry* entry = rank.phase(step, phase).Find(name);
    if (entry == nullptr) continue;
    parts.ranks.push_back(&rank);
    parts.entries.push_back(entry);
    parts.values.push_back(ElementsOf(*entry));
  }
  AddUp(&parts);
  return parts;
}

bool SameBytes(const ParityEntry& a, const ParityEntry& b) {
  return a.dtype == b.dtype && a.shape == b.shape &&
         std::equal(a.data, a.data + static_cast<size_t>(a.elements()) * ElementSize(a.dtype), b.data);
}

std::string CopyOf(const ParityRun& run, int step, const std::string& name) {
  std::string of;
  for (const ParityRank& rank : run) {
    const ParityEntry* own = rank.phase(step, "parameter").Find(name);
    if (own == nullptr) continue;
    const std::vector<double> values = ElementsOf(*own);
    if (std::all_of(values.begin(), values.end(), [&](double value) { return value == values.front(); })) return "";
    std::string here;
    for (const ParityRank& other : run) {
      if (other.rank == rank.rank || !SameBut(rank, other, {"pp"})) continue;
      for (const ParityEntry& entry : other.phase(step, "parameter").entries) {
        if (entry.name != name && SameBytes(*own, entry)) here = entry.name;
      }
    }
    if (here.empty() || (!of.empty() && of != here)) return "";
    of = here;
  }
  return of;
}

std::vector<int> NotAsOn(const ParityRun& run, int step, const std::string& phase, const std::string& copy,
                         const std::string& name) {
  std::vector<int> out;
  for (const ParityRank& rank : run) {
    const ParityEntry* own = rank.phase(step, phase).Find(copy);
    if (own == nullptr) continue;
    const bool same = std::any_of(run.begin(), run.end(), [&](const ParityRank& other) {
      const ParityEntry* entry = other.phase(step, phase).Find(name);
      return entry != nullptr && other.rank != rank.rank && SameBut(rank, other, {"pp"}) && SameBytes(*own, *entry);
    });
    if (!same) out.push_back(rank.rank);
  }
  return out;
}

RankParts OfLastStage(RankParts parts) {
  const auto stages = CoordinatesOf(parts.ranks);
  const auto found = stages.find("pp");
  if (found == stages.end()) return parts;
  const int last = *std::max_element(found->second.begin(), found->second.end());
  RankParts out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (found->second[i] != last) continue;
    out.ranks.push_back(parts.ranks[i]);
    out.entries.push_back(parts.entries[i]);
    out.values.push_back(std::move(parts.values[i]));
  }
  return out;
}

int StageOf(const RankParts& parts) {
  std::optional<int> stage;
  for (const ParityRank* rank : parts.ranks) {
    const auto found = rank->axes.find("pp");
    if (found == rank->axes.end()) continue;
    const int at = static_cast<int>(PlaceIn(found->second, rank->rank));
    stage = std::min(stage.value_or(at), at);
  }
  return stage.value_or(0);
}

bool IsDataAxis(std::string_view axis) { return axis != "tp" && axis != "pp"; }

std::string DataPlaceOf(const ParityRank& rank) {
  std::string out;
  for (const auto& [axis, group] : rank.axes) {
    if (IsDataAxis(axis)) out += axis + std::to_string(PlaceIn(group, rank.rank)) + " ";
  }
  return out;
}

bool SameBut(const ParityRank& a, const ParityRank& b, const std::vector<std::string>& axes) {
  return std::all_of(a.axes.begin(), a.axes.end(), [&](const auto& axis) {
    if (std::find(axes.begin(), axes.end(), axis.first) != axes.end()) return true;
    const auto other = b.axes.find(axis.first);
    return other != b.axes.end() && PlaceIn(axis.second, a.rank) == PlaceIn(other->second, b.rank);
  });
}

}  // namespace msprobe
