#include "judgement/judgement.h"

#include <algorithm>
#include <utility>

namespace msprobe {
namespace {

struct KindInfo {
  std::string_view name;
  JudgementWeight weight;
  std::string_view words;
};

constexpr KindInfo kKinds[] = {
#define MSP_JUDGEMENT(id, name, weight, words) {name, JudgementWeight::weight, words},
#include "judgement/judgement_kinds.def"
#undef MSP_JUDGEMENT
};

const KindInfo& InfoOf(JudgementKind kind) { return kKinds[static_cast<size_t>(kind)]; }

/// The least weight that lets a command fail.
JudgementWeight LeastOf(FailOn fail_on) {
  switch (fail_on) {
    case FailOn::kNever:
    case FailOn::kBug: return JudgementWeight::kFault;
    case FailOn::kSuspicious: return JudgementWeight::kSuspect;
    case FailOn::kAskPerson: return JudgementWeight::kPerson;
    case FailOn::kCannotSay: return JudgementWeight::kOpen;
    case FailOn::kRoundOff: return JudgementWeight::kExplained;
  }
  return JudgementWeight::kSame;
}

bool IsOpen(JudgementWeight weight) { return weight == JudgementWeight::kOpen || weight == JudgementWeight::kPerson; }

}  // namespace

std::string_view NameOf(JudgementKind kind) { return InfoOf(kind).name; }
Message WordsOf(JudgementKind kind) { return KnownText(InfoOf(kind).words); }
JudgementWeight WeightOf(JudgementKind kind) { return InfoOf(kind).weight; }

JudgementKind KindOf(const Judgement& judgement) {
  const bool good = WeightOf(judgement.kind) <= JudgementWeight::kExplained;
  return good && !judgement.not_seen.empty() ? JudgementKind::kNotSeen : judgement.kind;
}

Conclusion Conclude(std::vector<Judgement> judgements) {
  Conclusion out;
  out.judgements = std::move(judgements);
  for (const Judgement& judgement : out.judgements) {
    const JudgementKind kind = KindOf(judgement);
    ++out.counts[static_cast<size_t>(kind)];
    if (!judgement.asked && IsOpen(WeightOf(kind))) continue;
    // Of kinds that weigh the same, the later one in the list says more.
    if (out.worst &&
        (WeightOf(kind) < WeightOf(out.kind) || (WeightOf(kind) == WeightOf(out.kind) && kind <= out.kind)))
      continue;
    out.kind = kind;
    out.worst = judgement;
  }
  return out;
}

Message HeadlineOf(const Conclusion& conclusion) {
  Message out = WordsOf(conclusion.kind);
  if (!conclusion.worst) return out;
  const Judgement& worst = *conclusion.worst;
  // A sentence that begins with what it is about needs no name before it.
  const bool named = !worst.evidence.empty() && worst.evidence.front().English().starts_with(worst.about.English());
  const bool told = WeightOf(conclusion.kind) > JudgementWeight::kExplained && named;
  if (!worst.about.empty() && !told) out = Msg("{}: {}", out, worst.about);
  if (WeightOf(conclusion.kind) > JudgementWeight::kExplained) {
    if (!worst.evidence.empty()) return Msg("{}: {}", out, worst.evidence.front());
    if (!worst.not_seen.empty()) return Msg("{}: {}", out, worst.not_seen.front());
  }
  return out;
}

std::optional<FailOn> ParseFailOn(std::string_view text) {
  const auto found = std::find(kFailOnNames.begin(), kFailOnNames.end(), text);
  if (found == kFailOnNames.end()) return std::nullopt;
  return static_cast<FailOn>(found - kFailOnNames.begin());
}

Status StatusOf(const Conclusion& conclusion, std::optional<FailOn> given, const ExitRule& usual, Message finding) {
  const ExitRule rule = given ? ExitRule{*given, true} : usual;
  const JudgementWeight weight = WeightOf(conclusion.kind);
  if (rule.fail_on == FailOn::kNever) return OkStatus();
  if (weight >= LeastOf(rule.fail_on))
    return {Code::kFindings, given || finding.empty() ? HeadlineOf(conclusion) : std::move(finding)};
  if (rule.undecided && IsOpen(weight)) return {Code::kUndecided, Msg("not decided: {}", HeadlineOf(conclusion))};
  return OkStatus();
}

}  // namespace msprobe
