#include "report/rank_table.h"

#include <array>
#include <map>

#include "base/message.h"
#include "base/text.h"
#include "dump/rank_choice.h"
#include "sheet/table.h"

namespace msprobe {
namespace {

enum class Fate : uint8_t { kBegins, kOtherOps, kReached, kRoundOff, kEqual };
constexpr size_t kFates = 5;

Fate FateOf(const PairReport& pair) {
  const RulerCounts& n = pair.differences.ruler;
  if (n.bug + n.suspicious > 0) return Fate::kBegins;
  const bool alone = pair.counts.ops > pair.counts.matched_ops + pair.target_unseen || pair.golden_only_ops > 0;
  if (alone || n.rewritten > 0 || pair.differences.Answer().kind != FirstDifference::Kind::kNone) {
    return n.inherited > 0 && !alone && n.rewritten == 0 ? Fate::kReached : Fate::kOtherOps;
  }
  if (n.inherited > 0) return Fate::kReached;
  return n.round_off > 0 ? Fate::kRoundOff : Fate::kEqual;
}

/// "0,3-7"; of several steps "step 0: 0,3-7; step 1: 3".
Message RanksOf(const std::vector<const PairReport*>& pairs, bool steps) {
  std::map<int, std::vector<int>> by_step;
  for (const PairReport* pair : pairs) {
    if (pair->files.rank < 0) return Message(OneLine(pairs.front()->files.label));
    by_step[pair->files.step].push_back(pair->files.rank);
  }
  std::vector<Message> parts;
  for (const auto& [step, ranks] : by_step) {
    parts.push_back(steps ? Msg("step {}: {}", step, RankListText(ranks)) : Message(RankListText(ranks)));
  }
  return Joined(parts, Msg("; "));
}

}  // namespace

Message RanksAnswer(const CompareReport& report) {
  Message out(StoryText(report.story, LocaleLanguage()));
  std::array<std::vector<const PairReport*>, kFates> by_fate;
  size_t copies = 0;
  bool steps = false;
  for (const PairReport& pair : report.pairs) {
    by_fate[static_cast<size_t>(FateOf(pair))].push_back(&pair);
    copies += pair.rank && !pair.rank->equal_to.empty();
    steps = steps || pair.files.step != report.pairs.front().files.step;
  }
  out += copies == 0 ? Msg("ranks: {}\n", report.pairs.size())
                     : Msg("ranks: {}, of which {} have the files of another one and were not compared again\n",
                           report.pairs.size(), copies);
  const auto of = [&](Fate fate) -> const auto& { return by_fate[static_cast<size_t>(fate)]; };
  if (!of(Fate::kBegins).empty()) out += Msg("  a difference begins on: {}\n", RanksOf(of(Fate::kBegins), steps));
  if (!of(Fate::kOtherOps).empty()) {
    out += Msg("  other ops, or something else that is no value: {}\n", RanksOf(of(Fate::kOtherOps), steps));
  }
  if (!of(Fate::kReached).empty()) {
    out += Msg("  differences reach, and do not begin on: {}\n", RanksOf(of(Fate::kReached), steps));
  }
  out += Msg("  round-off: {}; bit-equal: {}\n", of(Fate::kRoundOff).size(), of(Fate::kEqual).size());
  return out;
}

Message RanksResult(const CompareReport& report) {
  uint64_t rows = 0, inherited = 0, written = 0;
  for (const PairReport& pair : report.pairs) {
    rows += pair.counts.rows;
    inherited += pair.rank->inherited;
    if (pair.rank->equal_to.empty()) written += pair.rank->differing;
  }
  Message out = Msg("rows: {}, of which {} inherit a difference; in the table: {}\n", rows, inherited, written);
  for (const std::string& path : report.differing) out += Msg("  result: {}\n", OneLine(path));
  out += Msg("  a line for each rank: {}\n", OneLine(report.ranks));
  return out;
}

StatusOr<std::string> WriteRankTable(const std::string& path, const CompareReport& report) {
  TableSpec spec;
  spec.path = path;
  spec.columns = {"Step",        "Rank",        "Rows",      "Differing Rows",  "Inherited Rows", "Ops",
                  "Bit-equal",   "Round-off",   "Rewritten", "Inherited",       "Suspicious",     "Bug",
                  "Target Only", "Golden Only", "Equal To",  "First Difference"};
  MSP_ASSIGN_OR_RETURN(const std::unique_ptr<ResultTable> table, CreateCsvTable(spec));
  RowBlock block;
  for (const PairReport& pair : report.pairs) {
    const RulerCounts& n = pair.differences.ruler;
    const CompareCounts& counts = pair.counts;
    const auto number = [](int v) { return v < 0 ? Cell::Word(kNotAvailableCell) : Cell::Integer(v); };
    std::vector<Cell> row{number(pair.files.step), number(pair.files.rank)};
    for (const uint64_t v : {counts.rows, pair.rank->differing, pair.rank->inherited, counts.ops, n.bit_equal,
                             n.round_off, n.rewritten, n.inherited, n.suspicious, n.bug,
                             counts.ops - counts.matched_ops - pair.target_unseen, pair.golden_only_ops}) {
      row.push_back(Cell::Unsigned(v));
    }
    row.push_back(Cell::Text(pair.rank->equal_to));
    row.push_back(Cell::Text(pair.rank->first));
    table->AppendRow(row, Cell::Color::kNone, &block);
  }
  MSP_RETURN_IF_ERROR(table->Take(std::move(block)));
  MSP_RETURN_IF_ERROR(table->Commit());
  return table->paths().front();
}

}  // namespace msprobe
