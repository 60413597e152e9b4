#include "graph/build/graph_summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "base/message.h"
#include "base/text.h"
#include "diagnose/story/story_judgement.h"
#include "json/writer.h"
#include "judgement/judgement_json.h"

namespace msprobe {

Message GraphSummaryText(const GraphSummary& s, bool compare, bool overflow_check) {
  Message out(s.story ? StoryText(*s.story, LocaleLanguage()) : std::string());
  out += Msg("graph: {} ({:.1f} MB)\n", OneLine(s.file), static_cast<double>(s.bytes) / 1e6);
  const char* more = s.graphs == 1 ? "" : "s";
  out += compare ? Msg("nodes: {} target, {} golden in {} graph{}\n", s.target_nodes, s.golden_nodes, s.graphs, more)
                 : Msg("nodes: {} target in {} graph{}\n", s.target_nodes, s.graphs, more);
  if (compare && s.story && s.story->unseen > 0) {
    out += Msg(
        "old rule: {} pass, {} warning, {} error, {} unmatched, {} without data; {} golden nodes unmatched, ops that "
        "were not seen among them: {}\n",
        s.levels[0], s.levels[1], s.levels[2], s.unmatched, s.no_data, s.golden_unmatched, s.story->unseen);
  } else if (compare) {
    out += Msg("old rule: {} pass, {} warning, {} error, {} unmatched, {} without data; {} golden nodes unmatched\n",
               s.levels[0], s.levels[1], s.levels[2], s.unmatched, s.no_data, s.golden_unmatched);
  }
  if (overflow_check) {
    out += Msg("overflow: {} critical, {} high, {} medium\n", s.overflows[3], s.overflows[2], s.overflows[1]);
  }
  for (const DamagedRank& d : s.damaged) {
    const Message why = OneLined(d.why.text());
    out += d.left_out ? Msg("left out: rank {} of step {}: {}\n", d.rank, d.step, why)
                      : Msg("incomplete: rank {} of step {}: {}\n", d.rank, d.step, why);
  }
  if (s.links > 0) out += Msg("communication: {} calls linked across ranks\n", s.links);
  if (s.first_error) {
    out += Msg("first error by the old rule: {} (step {}, rank {})\n", OneLine(s.first_error->node),
               s.first_error->step, s.first_error->rank);
  }
  if (!s.first_error_suspects.empty())
    out += Msg("suspect: the part of rank {}\n", fmt::format("{}", fmt::join(s.first_error_suspects, ", ")));
  if (!s.story || s.story->outcome != Story::Outcome::kOrigin) {
    out += FindingsText(s.findings);
    return out;
  }
  // What follows from the origin is not told beside it.
  std::vector<GraphFinding> apart;
  std::copy_if(s.findings.begin(), s.findings.end(), std::back_inserter(apart),
               [](const GraphFinding& f) { return !FollowsFromOrigin(f.kind); });
  out += FindingsText(apart);
  const size_t left = s.findings.size() - apart.size();
  if (left > 0) out += Msg("findings that may follow from it: {}, in table msprobe_findings\n", left);
  return out;
}

namespace {

void WriteDifference(JsonWriter* json, const RankDifference& d) {
  json->BeginObject();
  json->Member("step", d.step);
  json->Member("rank", d.rank);
  json->Member("kind", DifferenceKindText(d.difference.kind));
  json->Member("verdict", RulerVerdictText(d.difference.verdict));
  json->Member("node", d.difference.name);
  json->EndObject();
}

void WriteComparison(JsonWriter* json, const GraphSummary& s) {
  json->Member("task", s.task);
  json->Member("golden_nodes", s.golden_nodes);
  json->Member("pass", s.levels[0]);
  json->Member("warning", s.levels[1]);
  json->Member("error", s.levels[2]);
  json->Member("unmatched", s.unmatched);
  json->Member("no_data", s.no_data);
  json->Member("golden_unmatched", s.golden_unmatched);
  json->Key("first_error");
  if (s.first_error) {
    json->BeginObject();
    json->Member("step", s.first_error->step);
    json->Member("rank", s.first_error->rank);
    json->Member("order", s.first_error->order);
    json->Member("node", s.first_error->node);
    json->EndObject();
  } else {
    json->Null();
  }
  json->Key("first_difference");
  s.first_difference ? WriteDifference(json, *s.first_difference) : json->Null();
}

}  // namespace

Status GraphSummaryStatus(const GraphSummary& s) {
  const bool seen = s.gaps.empty() && s.unread == 0;
  if (s.damaged.empty()) return seen ? OkStatus() : NotWhole();
  const DamagedRank& first = s.damaged.front();
  size_t left_out = 0;
  for (const DamagedRank& d : s.damaged) left_out += d.left_out ? 1 : 0;
  if (s.merged) {
    return BadInput(
        Msg("{} is written, but ranks that are merged there are not whole, the first: {}", s.file, first.why.text()));
  }
  // Of a single dump the warning says it all; what explains its ops may lack a part.
  if (s.graphs + left_out < 2) return seen ? OkStatus() : NotWhole();
  return BadInput(
      Msg("{} is written, but {} of {} graphs are missing and others may be incomplete, the first is rank {} of step "
          "{}: {}",
          s.file, left_out, s.graphs + left_out, first.rank, first.step, first.why.text()));
}

std::string GraphSummaryJson(const GraphSummary& s, bool compare, bool overflow_check, std::string_view structures) {
  JsonWriter json;
  json.BeginObject();
  json.Member("file", s.file);
  json.Member("bytes", s.bytes);
  json.Member("graphs", s.graphs);
  json.Member("target_nodes", s.target_nodes);
  if (compare) WriteComparison(&json, s);
  if (overflow_check) {
    json.ObjectMember("overflow", [&] {
      json.Member("critical", s.overflows[3]);
      json.Member("high", s.overflows[2]);
      json.Member("medium", s.overflows[1]);
    });
  }
  if (s.merged) json.Member("suspect_ranks", s.first_error_suspects);
  json.ArrayMember("damaged", s.damaged, [&](const DamagedRank& d) {
    json.BeginObject();
    json.Member("step", d.step);
    json.Member("rank", d.rank);
    json.Member("left_out", d.left_out);
    json.Member("why", d.why.message());
    json.EndObject();
  });
  json.Key("not_whole"), WriteGaps(&json, s.gaps);
  json.Member("rows_without_tensor", s.unread);
  if (s.story) {
    json.RawMember("verdict", StoryJson(*s.story));
    WriteConclusion(Conclude(JudgementsOf(*s.story, Language::kEnglish)), &json);
  }
  json.Key("findings"), WriteFindings(&json, s.findings);
  json.Member("links", s.links);
  if (!structures.empty()) json.RawMember("structure", structures);
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace msprobe
