// Which of the sources of a step are to be named.
#include <algorithm>
#include <tuple>

#include "diagnose/overflow/overflow_flow.h"

namespace msprobe {
namespace {

using Kind = OverflowSource::Kind;

constexpr size_t kMostNamed = 8;

/// Named at all: not what is there on purpose or what nobody used.
bool Counts(const OverflowSource& s) {
  switch (s.kind) {
    case Kind::kMask: return false;
    case Kind::kUninitialised: return s.carriers > 0 && !s.absorbed() && !s.freed;
    case Kind::kInput: return s.kinds != kBadNegInf || !s.absorbed();
    default: return true;
  }
}

/// The best that there is: sources that others carried on, those that nobody was seen to read, absorbed ones.
std::vector<size_t> Candidates(const std::vector<OverflowSource>& sources) {
  std::vector<size_t> carried, unread, absorbed;
  bool strong = false;
  for (size_t i = 0; i < sources.size(); ++i) {
    const OverflowSource& s = sources[i];
    if (!Counts(s)) continue;
    (s.absorbed() ? absorbed : s.carriers > 0 ? carried : unread).push_back(i);
    strong = strong || (!s.absorbed() && s.carriers > 0 && !s.weak);
  }
  // What came from outside may have come from there by a way that no dump shows.
  if (!strong) carried.insert(carried.end(), unread.begin(), unread.end());
  return carried.empty() ? absorbed : carried;
}

}  // namespace

std::vector<size_t> FirstSources(const std::vector<OverflowSource>& sources, const CommGraph& graph) {
  // Without calls in the dumps (level L0) every exchange is hidden.
  const bool hidden =
      std::all_of(graph.ranks.begin(), graph.ranks.end(), [](const CommRank& r) { return r.calls.empty(); });
  std::vector<size_t> all = Candidates(sources);
  std::stable_sort(all.begin(), all.end(), [&](size_t a, size_t b) {
    return std::tie(sources[a].time, sources[a].reader) < std::tie(sources[b].time, sources[b].reader);
  });
  std::vector<size_t> out;
  std::vector<size_t> reached;  // rank -> the first op that a source named so far may have caused
  for (const CommRank& r : graph.ranks) reached.push_back(r.ops);
  std::vector<size_t> absorbed = reached;  // the same, of finite values that somebody made of what a source gave
  for (const size_t i : all) {
    const OverflowSource& s = sources[i];
    const OpPlace& p = s.reader;
    // What is made of clean values has no part in what others spoilt, unless these have become clean again.
    const bool again = std::any_of(out.begin(), out.end(), [&](size_t k) { return sources[k].api == s.api; });
    const bool own = s.own && !again && absorbed[p.rank] > p.op && out.size() < kMostNamed;
    if (!own && reached[p.rank] <= p.op) continue;
    // Gradients and parameters also travel by exchanges that no dump shows (those inside DistributedDataParallel).
    if (!own && (s.weak || hidden) && !out.empty() && sources[out[0]].time < s.time) continue;
    out.push_back(i);
    for (const OpPlace& a : s.absorbed_at) {
      const std::vector<size_t> more = graph.ReachedFrom(a.rank, a.op);
      for (size_t r = 0; r < absorbed.size(); ++r) absorbed[r] = std::min(absorbed[r], more[r]);
    }
    for (const OpPlace& place : s.places) {
      const OpPlace from = s.places.size() == 1 ? s.reader : place;
      const std::vector<size_t> more = graph.ReachedFrom(from.rank, from.op);
      for (size_t r = 0; r < reached.size(); ++r) reached[r] = std::min(reached[r], more[r]);
    }
  }
  return out;
}

}  // namespace msprobe
