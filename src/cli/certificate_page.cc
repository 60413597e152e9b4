#include "cli/certificate_page.h"

#include <fmt/format.h>

#include "base/message.h"
#include "base/text.h"

namespace msprobe {
namespace {

ReportDocument Told(const Message& verdict, std::string_view outcome, const std::string& command) {
  ReportDocument out;
  const BothWords headline = Both(OneLined(verdict));
  out.head = {"certificate", std::string(outcome), headline.en, headline.zh};
  if (!command.empty()) {
    ReportPart& part = out.parts.emplace_back();
    part.title = Both("What was run", "所运行的命令");
    part.blocks.emplace_back().commands.push_back(command);
  }
  return out;
}

ReportCell CellOf(const std::string& text, std::string tone = "code") { return {{{text, text}}, std::move(tone), {}}; }

std::string PlaceOf(const std::optional<RunDifference>& d) {
  return d ? fmt::format("step {}: {} {}", d->step, d->what, d->name) : "";
}

std::string_view ColourOf(ResumeOutcome outcome) {
  switch (outcome) {
    case ResumeOutcome::kEqual:
    case ResumeOutcome::kThroughOther: return "equal";
    case ResumeOutcome::kFrameworkDraws: return "round_off";
    case ResumeOutcome::kUndecided:
    case ResumeOutcome::kNotReproducible: return "unknown";
    default: return "origin";
  }
}

}  // namespace

ReportDocument CertificateDocument(const Certificate& certificate) {
  ReportDocument out = Told(certificate.Verdict(),
                            certificate.certified()       ? "equal"
                            : certificate.deterministic() ? "origin"
                                                          : "unknown",
                            certificate.command);
  ReportPart& part = out.parts.emplace_back();
  part.title = Both("Compared by rank", "各 rank 的对比");
  ReportTable& table = part.blocks.emplace_back().table.emplace();
  table.columns = {Both("Rank", "rank"), Both("Steps", "step 数"), Both("Two bare runs", "两次不采集的运行"),
                   Both("With capture", "采集时")};
  for (const RankCertificate& rank : certificate.ranks) {
    const auto cell = [](const std::optional<RunDifference>& d) {
      return d ? CellOf(PlaceOf(d)) : ReportCell{{Both("equal in every bit", "逐位相同")}, "good", {}};
    };
    table.rows.push_back({CellOf(rank.rank), CellOf(fmt::format("{}", rank.steps.size()), "number"),
                          cell(rank.between_bare), cell(rank.with_capture)});
  }
  return out;
}

ReportDocument ResumeDocument(const ResumeReport& report) {
  ReportDocument out = Told(report.Verdict(), ColourOf(report.outcome()), report.command);
  ReportPart& part = out.parts.emplace_back();
  part.title = Both("States by rank", "各 rank 的状态");
  ReportTable& table = part.blocks.emplace_back().table.emplace();
  table.columns = {Both("Rank", "rank"), Both("Compared", "已对比"), Both("Not restored", "未恢复"),
                   Both("First difference after it", "恢复后首个差异")};
  for (const RankResume& rank : report.ranks) {
    ReportCell lost;
    for (const LostState& state : rank.lost) {
      const std::string text = fmt::format("{}: {}", StateWord(state.kind), state.names[0].name);
      lost.lines.push_back({text, text});
    }
    table.rows.push_back({CellOf(rank.rank), CellOf(fmt::format("{}", rank.compared), "number"), std::move(lost),
                          CellOf(PlaceOf(rank.after))});
  }
  return out;
}

ReportDocument TwiceDocument(const TwiceReport& report) {
  ReportDocument out = Told(report.Verdict(), report.Repeats() ? "equal" : "origin", report.command);
  ReportPart& part = out.parts.emplace_back();
  part.title = Both("First difference by rank", "各 rank 的首个差异");
  ReportTable& table = part.blocks.emplace_back().table.emplace();
  table.columns = {Both("Rank", "rank"), Both("Steps", "step 数"), Both("Op", "算子"), Both("Value", "数值")};
  for (const RankTwice& rank : report.ranks) {
    table.rows.push_back({CellOf(rank.rank), CellOf(fmt::format("{}", rank.steps), "number"),
                          CellOf(rank.op.empty() ? "" : fmt::format("step {}: {}", rank.step, rank.op)),
                          CellOf(PlaceOf(rank.difference))});
  }
  return out;
}

}  // namespace msprobe
