#include "view/matching/partner_search.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "ops/op_name.h"

namespace msprobe::view {
namespace {

constexpr size_t kMostParts = 48;  // of a name; further ones do not count
constexpr size_t kMostRead = 24;   // whose shapes are read
constexpr double kLeastLikeness = 0.5;
constexpr double kPlaceBonus = 0.25, kShapeBonus = 0.3;

/// Parts of a name that say what a node is.
std::vector<std::string_view> PartsOf(std::string_view name) {
  std::vector<std::string_view> parts = Split(ParseOpName(name).base, '.');
  if (parts.size() > kMostParts) parts.erase(parts.begin(), parts.end() - kMostParts);
  return parts;
}

// The share of pairs of letters that two words have in common.
double WordLikeness(std::string_view a, std::string_view b) {
  if (a == b) return 1;
  if (a.size() < 2 || b.size() < 2 || IsDigits(a) || IsDigits(b)) return 0;
  std::vector<std::pair<char, char>> left, right;
  for (size_t i = 0; i + 1 < a.size(); ++i) left.emplace_back(a[i], a[i + 1]);
  for (size_t i = 0; i + 1 < b.size(); ++i) right.emplace_back(b[i], b[i + 1]);
  std::sort(left.begin(), left.end());
  std::sort(right.begin(), right.end());
  size_t common = 0;
  for (size_t i = 0, j = 0; i < left.size() && j < right.size();) {
    if (left[i] == right[j]) {
      ++common, ++i, ++j;
    } else {
      left[i] < right[j] ? ++i : ++j;
    }
  }
  return 2.0 * static_cast<double>(common) / static_cast<double>(left.size() + right.size());
}

// One name against many others, which share most of their words.
class NameMeter {
 public:
  explicit NameMeter(std::string_view name) : parts_(PartsOf(name)) {}

  double Likeness(std::string_view name) {
    const std::vector<std::string_view> others = PartsOf(name);
    if (parts_.empty() || others.empty()) return 0;
    // The best way to lay one list of words beside the other, in order.
    std::vector<double> row(parts_.size() + 1, 0), before;
    for (const std::string_view word : others) {
      const std::vector<double>& alike = Alike(word);
      before = row;
      for (size_t i = 0; i < parts_.size(); ++i) row[i + 1] = std::max({before[i] + alike[i], before[i + 1], row[i]});
    }
    return 2 * row.back() / static_cast<double>(parts_.size() + others.size());
  }

 private:
  const std::vector<double>& Alike(std::string_view word) {
    const auto [at, is_new] = known_.try_emplace(std::string(word));
    if (is_new) {
      for (const std::string_view part : parts_) at->second.push_back(WordLikeness(part, word));
    }
    return at->second;
  }

  const std::vector<std::string_view> parts_;
  std::unordered_map<std::string, std::vector<double>> known_;
};

// "dtype shape" of every tensor of a node.
std::vector<std::string> ShapesOf(const NodeRecord& record) {
  std::vector<std::string> out;
  for (const auto* rows : {&record.inputs, &record.outputs}) {
    for (const ViewRow& row : *rows) {
      std::string dtype, shape;
      for (const auto& [key, value] : row.values) {
        if (key == "dtype") dtype = value;
        if (key == "shape") shape = value;
      }
      if (!shape.empty() && row.name.find(".parameters") == std::string::npos) out.push_back(dtype + " " + shape);
    }
  }
  return out;
}

double Score(const PartnerGuess& guess) {
  const double shapes = guess.same_shapes ? (*guess.same_shapes ? kShapeBonus : -kShapeBonus) : 0;
  return guess.name + (guess.same_place ? kPlaceBonus : 0) + shapes;
}

void KeepBest(size_t most, std::vector<PartnerGuess>* guesses) {
  const size_t kept = std::min(most, guesses->size());
  const auto better = [](const PartnerGuess& a, const PartnerGuess& b) {
    return Score(a) != Score(b) ? Score(a) > Score(b) : a.node < b.node;
  };
  std::partial_sort(guesses->begin(), guesses->begin() + static_cast<ptrdiff_t>(kept), guesses->end(), better);
  guesses->resize(kept);
}

}  // namespace

double NameLikeness(std::string_view a, std::string_view b) { return NameMeter(a).Likeness(b); }

StatusOr<std::vector<PartnerGuess>> GuessPartners(const VisFile& file, const GraphSides& graph, bool target,
                                                  uint32_t node, size_t most) {
  const Tree &own = target ? graph.target : graph.golden, &other = target ? graph.golden : graph.target;
  std::vector<PartnerGuess> guesses;
  if (!graph.compared || own.IsMatched(node)) return guesses;
  const std::string_view name = own.Name(node);
  const OpDirection direction = ParseOpName(name).direction;
  const uint32_t parent = own.Parent(node);
  const uint32_t place = parent == kNoNode ? kNoNode : own[parent].partner;
  NameMeter meter(name);
  for (uint32_t i = 0; i < other.size(); ++i) {
    if (other.IsMatched(i) || other.Type(i) != own.Type(node)) continue;
    if (ParseOpName(other.Name(i)).direction != direction) continue;
    PartnerGuess guess{i, meter.Likeness(other.Name(i)), place != kNoNode && other.Parent(i) == place, std::nullopt};
    if (guess.name >= kLeastLikeness || guess.same_place) guesses.push_back(guess);
  }
  KeepBest(kMostRead, &guesses);
  if (guesses.empty()) return guesses;
  MSP_ASSIGN_OR_RETURN(const NodeRecord record, file.LoadRecord(own[node].rowid));
  const std::vector<std::string> shapes = ShapesOf(record);
  for (PartnerGuess& guess : guesses) {
    if (shapes.empty()) break;
    MSP_ASSIGN_OR_RETURN(const NodeRecord theirs, file.LoadRecord(other[guess.node].rowid));
    if (const auto found = ShapesOf(theirs); !found.empty()) guess.same_shapes = found == shapes;
  }
  KeepBest(most, &guesses);
  return guesses;
}

}  // namespace msprobe::view
