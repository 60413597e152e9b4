// The summary of a graph as text and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "graph/visualize.h"

namespace msprobe {

std::string GraphSummaryText(const GraphSummary& s, bool compare, bool overflow_check) {
  std::string out = fmt::format("graph: {} ({:.1f} MB)\n", OneLine(s.file), static_cast<double>(s.bytes) / 1e6);
  out += fmt::format("nodes: {} target", s.npu_nodes);
  if (compare) out += fmt::format(", {} golden", s.bench_nodes);
  out += fmt::format(" in {} graph{}\n", s.graphs, s.graphs == 1 ? "" : "s");
  if (compare) {
    out += fmt::format(
        "verdict: {} pass, {} warning, {} error, {} unmatched, {} without data; {} golden nodes unmatched\n",
        s.levels[0], s.levels[1], s.levels[2], s.unmatched, s.no_data, s.bench_unmatched);
  }
  if (overflow_check) {
    out += fmt::format("overflow: {} critical, {} high, {} medium\n", s.overflows[3], s.overflows[2], s.overflows[1]);
  }
  for (const DamagedRank& d : s.damaged) {
    out += fmt::format("{}: rank {} of step {}: {}\n", d.left_out ? "left out" : "incomplete", d.rank, d.step,
                       OneLine(d.why.message()));
  }
  if (s.links > 0) out += fmt::format("communication: {} calls linked across ranks\n", s.links);
  if (s.first_difference) {
    const RankDifference& d = *s.first_difference;
    out += fmt::format("differs first: {} ({}, step {}, rank {})\n", OneLine(d.difference.name),
                       DifferenceKindText(d.difference.kind), d.step, d.rank);
  }
  if (s.first_error) {
    out += fmt::format("first error: {} (step {}, rank {})\n", OneLine(s.first_error->node), s.first_error->step,
                       s.first_error->rank);
  }
  if (!s.first_error_suspects.empty())
    out += fmt::format("suspect: the part of rank {}\n", fmt::join(s.first_error_suspects, ", "));
  return out + FindingsText(s.findings);
}

namespace {

std::string DifferenceJson(const RankDifference& d) {
  std::string out =
      fmt::format("{{\"step\": {}, \"rank\": {}, \"kind\": \"{}\", \"verdict\": \"{}\", \"node\": ", d.step, d.rank,
                  DifferenceKindText(d.difference.kind), RulerVerdictText(d.difference.verdict));
  AppendJsonString(out, d.difference.name);
  return out + '}';
}

}  // namespace

Status GraphSummaryStatus(const GraphSummary& s) {
  if (s.damaged.empty()) return OkStatus();
  const DamagedRank& first = s.damaged.front();
  size_t left_out = 0;
  for (const DamagedRank& d : s.damaged) left_out += d.left_out ? 1 : 0;
  if (s.merged) {
    return BadInput(fmt::format("{} is written, but ranks that are merged there are not whole, the first: {}", s.file,
                                first.why.message()));
  }
  // Of a single dump the warning says it all.
  if (s.graphs + left_out < 2) return OkStatus();
  return BadInput(
      fmt::format("{} is written, but {} of {} graphs are missing and others may be incomplete, the first is rank "
                  "{} of step {}: {}",
                  s.file, left_out, s.graphs + left_out, first.rank, first.step, first.why.message()));
}

std::string GraphSummaryJson(const GraphSummary& s, bool compare, bool overflow_check) {
  std::string out = "{\"file\": ";
  AppendJsonString(out, s.file);
  out += fmt::format(", \"bytes\": {}, \"graphs\": {}, \"target_nodes\": {}", s.bytes, s.graphs, s.npu_nodes);
  if (compare) {
    out += fmt::format(
        ", \"task\": \"{}\", \"golden_nodes\": {}, \"pass\": {}, \"warning\": {}, \"error\": {}, \"unmatched\": {}, "
        "\"no_data\": {}, \"golden_unmatched\": {}, \"first_error\": ",
        s.task, s.bench_nodes, s.levels[0], s.levels[1], s.levels[2], s.unmatched, s.no_data, s.bench_unmatched);
    if (s.first_error) {
      out += fmt::format("{{\"step\": {}, \"rank\": {}, \"order\": {}, \"node\": ", s.first_error->step,
                         s.first_error->rank, s.first_error->order);
      AppendJsonString(out, s.first_error->node);
      out += '}';
    } else {
      out += "null";
    }
    out += ", \"first_difference\": ";
    out += s.first_difference ? DifferenceJson(*s.first_difference) : "null";
  }
  if (overflow_check) {
    out += fmt::format(", \"overflow\": {{\"critical\": {}, \"high\": {}, \"medium\": {}}}", s.overflows[3],
                       s.overflows[2], s.overflows[1]);
  }
  if (s.merged) out += fmt::format(", \"suspect_ranks\": [{}]", fmt::join(s.first_error_suspects, ", "));
  out += ", \"damaged\": [";
  for (size_t i = 0; i < s.damaged.size(); ++i) {
    const DamagedRank& d = s.damaged[i];
    out += fmt::format("{}{{\"step\": {}, \"rank\": {}, \"left_out\": {}, \"why\": ", i ? ", " : "", d.step, d.rank,
                       d.left_out);
    AppendJsonString(out, d.why.message());
    out += '}';
  }
  out += "], \"findings\": " + FindingsJson(s.findings);
  return out + fmt::format(", \"links\": {}}}\n", s.links);
}

}  // namespace msprobe
