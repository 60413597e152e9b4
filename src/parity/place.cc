#include "parity/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

namespace msprobe {
namespace {

using Coordinates = std::map<std::string, std::vector<int>>;

int SizeOf(const std::vector<int>& coordinates) {
  return *std::max_element(coordinates.begin(), coordinates.end()) + 1;
}

std::vector<std::vector<int64_t>> All(const std::vector<int64_t>& shape) {
  std::vector<std::vector<int64_t>> out;
  for (const int64_t length : shape) {
    out.emplace_back(static_cast<size_t>(length));
    std::iota(out.back().begin(), out.back().end(), int64_t{0});
  }
  return out;
}

std::vector<int64_t> Chunk(const std::vector<int64_t>& all, size_t number, size_t of) {
  if (all.size() % of != 0) return {};
  const size_t each = all.size() / of;
  return {all.begin() + static_cast<int64_t>(number * each), all.begin() + static_cast<int64_t>((number + 1) * each)};
}

std::vector<int64_t> Joined(std::vector<int64_t> a, const std::vector<int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<int64_t> Blocks(const std::vector<int64_t>& all, size_t part, size_t parts, size_t block) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i / block % parts == part) out.push_back(all[i]);
  }
  return out;
}

std::vector<int64_t> Divided(const std::vector<int64_t>& all, AxisRole role, int part, int parts, int64_t block) {
  const auto p = static_cast<size_t>(part), n = static_cast<size_t>(parts);
  switch (role) {
    case AxisRole::kSplit: return Chunk(all, p, n);
    case AxisRole::kZigZag: return Joined(Chunk(all, p, 2 * n), Chunk(all, 2 * n - 1 - p, 2 * n));
    case AxisRole::kRows: return Blocks(all, p, n, static_cast<size_t>(block));
    case AxisRole::kHalves: return Joined(Chunk(all, p, 2 * n), Chunk(all, n + p, 2 * n));
    default: return all;
  }
}

bool Fits(const RankPlace& place, const std::vector<int64_t>& shape) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (static_cast<int64_t>(place.indices[d].size()) != shape[d]) return false;
  }
  return true;
}

/// Rows of unequal number: those of the ranks before come first.
bool UnevenRows(const RankParts& parts, const Coordinates& coordinates, const AxisPlace& split,
                const std::vector<int64_t>& whole, RankMapping* mapping) {
  const std::vector<int>& own = coordinates.at(split.axis);
  const auto dim = static_cast<size_t>(split.dim);
  std::map<int, int64_t> lengths;
  for (size_t i = 0; i < parts.size(); ++i) lengths[own[i]] = parts.entries[i]->shape[dim];
  int64_t sum = 0;
  std::map<int, int64_t> begins;
  for (const auto& [at, length] : lengths) begins[at] = std::exchange(sum, sum + length);
  if (sum != whole[dim]) return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    auto& indices = mapping->places[i].indices[dim];
    indices.resize(static_cast<size_t>(lengths[own[i]]));
    std::iota(indices.begin(), indices.end(), begins[own[i]]);
  }
  return true;
}

bool Placed(const RankParts& parts, const Coordinates& coordinates, const std::vector<int64_t>& whole,
            RankMapping* mapping) {
  mapping->places.assign(parts.size(), RankPlace{All(whole)});
  size_t splits = 0;
  const AxisPlace* split = nullptr;
  for (const AxisPlace& axis : mapping->axes) {
    if (axis.role == AxisRole::kReplica || axis.role == AxisRole::kSum) continue;
    ++splits, split = &axis;
    const std::vector<int>& own = coordinates.at(axis.axis);
    for (size_t i = 0; i < parts.size(); ++i) {
      auto& indices = mapping->places[i].indices[static_cast<size_t>(axis.dim)];
      indices = Divided(indices, axis.role, own[i], SizeOf(own), axis.block);
    }
  }
  const auto all_fit = [&] {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!Fits(mapping->places[i], parts.entries[i]->shape)) return false;
    }
    return true;
  };
  if (all_fit()) return true;
  if (splits != 1 || split->role != AxisRole::kSplit) return false;
  mapping->places.assign(parts.size(), RankPlace{All(whole)});
  return UnevenRows(parts, coordinates, *split, whole, mapping) && all_fit();
}

/// What an axis may do: nothing, divide a dimension that is shorter here, or add up.
std::vector<AxisPlace> RolesOf(const std::string& axis, const std::vector<int64_t>& whole,
                               const std::vector<int64_t>& part) {
  std::vector<AxisPlace> out{{axis, AxisRole::kReplica, 0, 0}};
  for (const AxisRole role : {AxisRole::kSplit, AxisRole::kZigZag, AxisRole::kHalves}) {
    for (size_t d = 0; d < whole.size(); ++d) {
      if (part[d] < whole[d]) out.push_back({axis, role, static_cast<int>(d), 0});
    }
  }
  for (int64_t block = 1; axis == "dp" && !whole.empty() && part[0] < whole[0] && block < part[0]; ++block) {
    if (part[0] % block == 0) out.push_back({axis, AxisRole::kRows, 0, block});
  }
  out.push_back({axis, AxisRole::kSum, 0, 0});
  return out;
}

/// What an axis does to declared parts.
AxisPlace DeclaredAlong(const RankParts& parts, const std::string& axis, const RankMapping& mapping) {
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (parts.ranks[i]->axes.at(axis) != parts.ranks[j]->axes.at(axis)) continue;
      const auto &a = mapping.places[i].indices, &b = mapping.places[j].indices;
      for (size_t d = 0; d < a.size(); ++d) {
        if (a[d] != b[d]) return {axis, AxisRole::kSplit, static_cast<int>(d), 0};
      }
    }
  }
  return {axis, AxisRole::kReplica, 0, 0};
}

RankMapping Declared(const RankParts& parts, const std::vector<int64_t>& whole, const Coordinates& coordinates) {
  RankMapping mapping;
  for (const ParityEntry* entry : parts.entries) {
    RankPlace& place = mapping.places.emplace_back();
    for (size_t d = 0; d < whole.size(); ++d) {
      auto& indices = place.indices.emplace_back();
      std::set<std::pair<int64_t, int64_t>> known;
      for (const ParityBox& box : entry->boxes) {
        if (!known.emplace(box.begin[d], box.size[d]).second) continue;
        for (int64_t i = 0; i < box.size[d]; ++i) indices.push_back(box.begin[d] + i);
      }
    }
  }
  for (const auto& one : coordinates) mapping.axes.push_back(DeclaredAlong(parts, one.first, mapping));
  return mapping;
}

}  // namespace

bool RankParts::declared() const {
  return !entries.empty() &&
         std::all_of(entries.begin(), entries.end(), [](const auto* e) { return !e->boxes.empty(); });
}

std::string RankMapping::Text() const {
  std::string out;
  for (const AxisPlace& axis : axes) {
    if (!out.empty()) out += ", ";
    switch (axis.role) {
      case AxisRole::kReplica: out += fmt::format("{} replica", axis.axis); break;
      case AxisRole::kSplit: out += fmt::format("{} splits dim {}", axis.axis, axis.dim); break;
      case AxisRole::kZigZag: out += fmt::format("{} splits dim {} zigzag", axis.axis, axis.dim); break;
      case AxisRole::kRows: out += fmt::format("{} has blocks of {} rows", axis.axis, axis.block); break;
      case AxisRole::kHalves: out += fmt::format("{} splits both halves of dim {}", axis.axis, axis.dim); break;
      case AxisRole::kSum: out += fmt::format("{} summands", axis.axis); break;
      case AxisRole::kMean: out += fmt::format("{} has means of its own rows", axis.axis); break;
    }
  }
  return out.empty() ? "whole" : out;
}

std::vector<std::string> RankMapping::Sums() const {
  std::vector<std::string> out;
  for (const AxisPlace& axis : axes) {
    if (axis.role == AxisRole::kSum) out.push_back(axis.axis);
  }
  return out;
}

int RankMapping::cost() const {
  int cost = 0;
  for (const AxisPlace& axis : axes) {
    cost += axis.role == AxisRole::kSum ? 100 : axis.role >= AxisRole::kZigZag ? 10 : 0;
  }
  return cost;
}

bool RankMapping::IsSum() const { return !Sums().empty(); }

Coordinates CoordinatesOf(const std::vector<const ParityRank*>& ranks) {
  Coordinates out;
  if (ranks.empty()) return out;
  for (const auto& [axis, unused] : ranks.front()->axes) {
    std::vector<int> own;
    for (const ParityRank* rank : ranks) {
      const auto found = rank->axes.find(axis);
      if (found == rank->axes.end()) break;
      const auto at = std::find(found->second.begin(), found->second.end(), rank->rank);
      own.push_back(static_cast<int>(at - found->second.begin()));
    }
    const std::set<int> distinct(own.begin(), own.end());
    if (own.size() == ranks.size() && distinct.size() > 1) out[axis] = own;
  }
  return out;
}

std::vector<RankMapping> MappingsOf(const RankParts& parts, const std::vector<int64_t>& whole) {
  const Coordinates coordinates = CoordinatesOf(parts.ranks);
  const auto all = [&](auto holds) { return std::all_of(parts.entries.begin(), parts.entries.end(), holds); };
  const bool as_declared = parts.declared() && all([&](const ParityEntry* entry) { return entry->whole == whole; });
  // What is marked as divided, and is the whole on each rank, is marked wrongly.
  if (parts.declared() && !as_declared && !all([&](const ParityEntry* entry) { return entry->shape == whole; })) {
    return {};
  }
  if (as_declared) {
    RankMapping declared = Declared(parts, whole, coordinates);
    for (size_t i = 0; i < parts.size(); ++i) {
      size_t count = 1;
      for (const auto& indices : declared.places[i].indices) count *= indices.size();
      if (count != parts.values[i].size()) return {};
    }
    return {std::move(declared)};
  }
  for (const ParityEntry* entry : parts.entries) {
    if (entry->shape.size() != whole.size()) return {};
  }
  std::vector<RankMapping> found{RankMapping{}};
  for (const auto& [axis, unused] : coordinates) {
    std::vector<RankMapping> longer;
    for (const RankMapping& mapping : found) {
      for (const AxisPlace& role : RolesOf(axis, whole, parts.entries.front()->shape)) {
        longer.push_back(mapping);
        longer.back().axes.push_back(role);
      }
    }
    found = std::move(longer);
  }
  std::erase_if(found, [&](RankMapping& mapping) { return !Placed(parts, coordinates, whole, &mapping); });
  std::stable_sort(found.begin(), found.end(),
                   [](const RankMapping& a, const RankMapping& b) { return a.cost() < b.cost(); });
  return found;
}

std::vector<double> Taken(const std::vector<double>& whole, const std::vector<int64_t>& shape, const RankPlace& place) {
  std::vector<int64_t> offsets{0};
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t stride = 1;
    for (size_t i = d + 1; i < shape.size(); ++i) stride *= shape[i];
    std::vector<int64_t> next;
    next.reserve(offsets.size() * place.indices[d].size());
    for (const int64_t offset : offsets) {
      for (const int64_t index : place.indices[d]) next.push_back(offset + index * stride);
    }
    offsets = std::move(next);
  }
  std::vector<double> out;
  out.reserve(offsets.size());
  for (const int64_t offset : offsets) out.push_back(whole[static_cast<size_t>(offset)]);
  return out;
}

std::vector<double> WholeOf(const RankParts& parts, const RankMapping& mapping, const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t length : shape) count *= length;
  std::vector<double> index(static_cast<size_t>(count));
  std::iota(index.begin(), index.end(), 0.0);
  std::vector<double> out(index.size(), std::numeric_limits<double>::quiet_NaN());
  const Coordinates coordinates = CoordinatesOf(parts.ranks);
  for (size_t i = 0; i < parts.size(); ++i) {
    bool first_replica = true;  // of several equal ones the first counts
    for (const AxisPlace& axis : mapping.axes) {
      if (axis.role == AxisRole::kReplica && !parts.declared() && coordinates.at(axis.axis)[i] != 0)
        first_replica = false;
    }
    if (!first_replica && !parts.entries[i]->valid) continue;
    const std::vector<double> at = Taken(index, shape, mapping.places[i]);
    const auto& valid = parts.entries[i]->valid;
    for (size_t e = 0; e < at.size(); ++e) {
      if (valid && (static_cast<int64_t>(e) < valid->first || static_cast<int64_t>(e) >= valid->second)) continue;
      double& value = out[static_cast<size_t>(at[e])];
      if (std::isnan(value))
        value = parts.values[i][e];
      else if (mapping.IsSum())
        value += parts.values[i][e];
    }
  }
  return out;
}

}  // namespace msprobe
