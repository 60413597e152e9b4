#include "dump/rank_choice.h"

#include <algorithm>
#include <cstdlib>

#include "base/message.h"
#include "base/text.h"

namespace msprobe {
namespace {

constexpr size_t kMostDigits = 9;

bool ReadRank(std::string_view text, int* out) {
  if (!IsDigits(text) || text.size() > kMostDigits) return false;
  *out = std::atoi(std::string(text).c_str());
  return true;
}

bool ReadRange(std::string_view text, std::pair<int, int>* out) {
  const size_t dash = std::min(text.find('-'), text.size());
  if (!ReadRank(text.substr(0, dash), &out->first)) return false;
  out->second = out->first;
  if (dash == text.size()) return true;
  return ReadRank(text.substr(dash + 1), &out->second) && out->first <= out->second;
}

}  // namespace

StatusOr<RankChoice> RankChoice::Read(std::string_view text) {
  RankChoice out;
  out.text_ = OneLine(text);
  std::string left(text);
  std::erase(left, ' ');
  if (left.empty()) return out;
  for (size_t at = 0; at <= left.size();) {
    const size_t end = std::min(left.find(',', at), left.size());
    if (!ReadRange(std::string_view(left).substr(at, end - at), &out.ranges_.emplace_back())) {
      return UsageError(Msg("--ranks takes ranks and ranges of them, such as 0,3,8-15: '{}' is neither", out.text_));
    }
    at = end + 1;
  }
  return out;
}

bool RankChoice::Holds(int rank) const {
  return all() || std::ranges::any_of(ranges_, [&](const auto& r) { return r.first <= rank && rank <= r.second; });
}

Status RankChoice::NoneOf(const std::string& where) const {
  return UsageError(Msg("{} has none of the ranks of --ranks {}", where, text_));
}

Status RankChoice::Apply(DumpPath* path) const {
  if (all()) return OkStatus();
  for (StepDir& step : path->steps) {
    std::erase_if(step.ranks, [&](const RankDir& rank) { return !Holds(rank.rank.value_or(-1)); });
  }
  std::erase_if(path->steps, [](const StepDir& step) { return step.ranks.empty(); });
  return path->steps.empty() ? NoneOf(path->path) : OkStatus();
}

std::string RankListText(std::vector<int> ranks) {
  constexpr size_t kShown = 12;  // ranges
  std::ranges::sort(ranks);
  std::string out;
  size_t ranges = 0;
  for (size_t i = 0; i < ranks.size(); ++ranges) {
    if (ranges == kShown) return out + fmt::format(",... ({})", ranks.size());
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] <= ranks[end - 1] + 1) ++end;
    if (ranges > 0) out += ',';
    out += std::to_string(ranks[i]);
    if (ranks[end - 1] != ranks[i]) out += "-" + std::to_string(ranks[end - 1]);
    i = end;
  }
  return out;
}

}  // namespace msprobe
