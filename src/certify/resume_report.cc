// What `certify --resume` says, for people and for programs.
#include <fmt/format.h>

#include <algorithm>

#include "base/message.h"
#include "certify/resume_verdict.h"
#include "json/writer.h"

namespace msprobe {
namespace {

constexpr size_t kMostTold = 3;

std::string ValuesText(const LostName& n) { return fmt::format("{} instead of {}", n.is, n.was); }

std::string LostText(const LostState& s) {
  std::string out = fmt::format("{} (", StateWord(s.kind));
  if (s.names.size() > kMostTold || !s.explanation.empty() || s.missing()) {
    out += s.names[0].name;
    if (s.names.size() > 1) out += fmt::format(" and {} more", s.names.size() - 1);
    if (s.missing()) return out + ": not there)";
    out += fmt::format(": {}", s.explanation.empty() || s.kind == "number" ? ValuesText(s.names[0]) : "");
  } else {
    for (const LostName& n : s.names) {
      out += fmt::format("{}{}: {}", &n == s.names.data() ? "" : ", ", n.name, ValuesText(n));
    }
  }
  if (!s.explanation.empty()) return out + (s.kind == "number" ? "; " : "") + s.explanation + ")";
  return out + (s.all_first() ? ", as at the first step)" : ")");
}

std::string ListText(const std::vector<LostState>& states) {
  std::string out;
  for (const LostState& s : states) out += (out.empty() ? "" : "; ") + LostText(s);
  return out;
}

std::string AfterText(const RankResume& r) {
  if (!r.after) return fmt::format("the {} steps after it are equal in every bit", r.steps);
  return fmt::format("the first to differ is the {} {} of step {}", r.after->what, r.after->name, r.after->step);
}

void WriteStates(JsonWriter* json, std::string_view key, const std::vector<LostState>& states) {
  json->ArrayMember(key, states, [&](const LostState& s) {
    json->BeginObject();
    json->Member("kind", s.kind);
    json->Member("what", StateWord(s.kind));
    json->Member("count", static_cast<uint64_t>(s.names.size()));
    json->Member("example", s.names[0].name);
    json->Member("was", s.names[0].was);
    json->Member("is", s.names[0].is);
    json->Member("as_at_first_step", s.all_first());
    json->Member("explanation", s.explanation);
    json->ArrayMember("names", s.names, [&](const LostName& n) {
      json->Object([&] {
        json->Member("name", n.name);
        json->Member("was", n.was);
        json->Member("is", n.is);
      });
    });
    json->EndObject();
  });
}

std::string RankText(const RankResume& r) {
  JsonWriter json;
  json.BeginObject();
  json.Member("rank", r.rank);
  json.Member("outcome", ResumeOutcomeText(r.outcome));
  json.Member("compared", r.compared);
  json.Member("steps", r.steps);
  WriteStates(&json, "lost", r.lost);
  WriteStates(&json, "drawn_by_framework", r.drawn);
  WriteStates(&json, "perhaps_lost", r.perhaps);
  WriteStates(&json, "numbers_that_differ", r.suspects);
  json.Member("unjudged", r.unjudged);
  for (const auto& [key, d] : {std::pair{"difference_before_save", &r.before}, {"difference_after_resume", &r.after}}) {
    json.Key(key);
    if (!*d) {
      json.Null();
      continue;
    }
    json.Object([&, difference = &**d] {
      json.Member("step", difference->step);
      json.Member("what", difference->what);
      json.Member("name", difference->name);
    });
  }
  json.ObjectMember("first_op_that_noticed", [&] {
    json.Member("step", r.noticed_step);
    json.Member("op", r.noticed);
  });
  json.EndObject();
  return json.Take();
}

}  // namespace

std::string_view ResumeOutcomeText(ResumeOutcome outcome) {
  switch (outcome) {
    case ResumeOutcome::kEqual: return "equal";
    case ResumeOutcome::kThroughOther: return "through_other_rank";
    case ResumeOutcome::kFrameworkDraws: return "restored";
    case ResumeOutcome::kUndecided: return "cannot_say";
    case ResumeOutcome::kLost: return "lost";
    case ResumeOutcome::kUnexplained: return "unexplained";
    case ResumeOutcome::kNotReproducible: return "not_reproducible";
  }
  return "";
}

ResumeOutcome ResumeReport::outcome() const {
  ResumeOutcome worst = ResumeOutcome::kEqual;
  for (const RankResume& r : ranks) worst = std::max(worst, r.outcome);
  return worst;
}

ResumeOutcome ResumeReport::CauseElsewhere() const {
  ResumeOutcome worst = ResumeOutcome::kEqual;
  for (const RankResume& r : ranks) {
    const bool own = r.outcome == ResumeOutcome::kFrameworkDraws || r.outcome == ResumeOutcome::kLost;
    if (own) worst = std::max(worst, r.outcome);
  }
  return worst;
}

Message ResumeReport::Verdict() const {
  const ResumeOutcome all = outcome();
  const auto found = std::find_if(ranks.begin(), ranks.end(), [&](const RankResume& r) { return r.outcome == all; });
  if (found == ranks.end()) return Msg("the script ran no step");
  const RankResume& r = *found;
  switch (all) {
    case ResumeOutcome::kThroughOther:  // is never the worst of all
    case ResumeOutcome::kEqual:
      return Msg("resumed as if never killed: {} states of {} are equal, and {} steps after them in every bit",
                 r.compared, r.rank, r.steps);
    case ResumeOutcome::kFrameworkDraws:
      return Msg(
          "restored, but not equal in every bit, by the framework's own doing: on {} {}; no script can change that "
          "unless it keeps its iterator's order itself",
          r.rank, ListText(r.drawn));
    case ResumeOutcome::kUndecided:
      return Msg(
          "cannot say: perhaps not restored on {}: {}; its object saves other state, and {}, which does not show "
          "whether anything depends on it",
          r.rank, ListText(r.perhaps), AfterText(r));
    case ResumeOutcome::kLost: return Msg("not restored on {}: {}; {}", r.rank, ListText(r.lost), AfterText(r));
    case ResumeOutcome::kUnexplained: return Msg("no lost state was found, but on {} {}", r.rank, AfterText(r));
    case ResumeOutcome::kNotReproducible:
      return Msg(
          "nothing can be said of the steps: two runs differ before the script saves ({} {} of step {} on {}): see "
          "certify --twice{}",
          r.before->what, r.before->name, r.before->step, r.rank,
          r.lost.empty() ? "" : fmt::format("; not restored in any case: {}", ListText(r.lost)));
  }
  return {};
}

std::string ResumeReport::Json() const {
  JsonWriter json(kJsonIndented);
  json.BeginObject();
  json.Member("kind", "resume");
  json.Member("outcome", ResumeOutcomeText(outcome()));
  json.Member("verdict", Verdict());
  json.Member("save_at", save_at);
  json.Member("saved_inside_of_a_step",
              std::any_of(ranks.begin(), ranks.end(), [](const RankResume& r) { return r.inside; }));
  json.Member("checkpoint_was_read", loaded);
  json.Member("created", created);
  json.Member("command", command);
  json.Member("resume_command", resume_command);
  json.Member("msprobe", MSPROBE_VERSION);
  json.Member("python", python);
  json.Member("torch", torch);
  json.ArrayMember("ranks", ranks, [&](const RankResume& r) { json.Raw(RankText(r)); });
  json.EndObject();
  return json.Take() + "\n";
}

std::string ResumeReport::Markdown() const {
  std::string md = fmt::format(
      "# Resume after {} steps: {}\n\n{}.\n\n| | |\n|---|---|\n| command | `{}` |\n| resumed by | `{}` |\n| versions "
      "| msprobe {}, Python {}, PyTorch {} |\n\n"
      "| process | outcome | state | names | example | was | is | why |\n|---|---|---|---|---|---|---|---|\n",
      save_at, ResumeOutcomeText(outcome()), Verdict(), command, resume_command, MSPROBE_VERSION, python, torch);
  for (const RankResume& r : ranks) {
    const auto row = [&](std::string_view what, const LostState& s) {
      md += fmt::format("| {} | {} | {} | {} | `{}` | `{}` | `{}` | {} |\n", r.rank, what, StateWord(s.kind),
                        s.names.size(), s.names[0].name, s.names[0].was, s.names[0].is, s.explanation);
    };
    for (const LostState& s : r.lost) row("lost", s);
    for (const LostState& s : r.drawn) row("drawn by the framework", s);
    for (const LostState& s : r.perhaps) row("perhaps lost", s);
    for (const LostState& s : r.suspects) row("differs, perhaps no state", s);
    for (const std::string& name : r.unjudged) {
      md += fmt::format("| {} | differs in every run | {} | | | | | |\n", r.rank, name);
    }
  }
  md +=
      "\n| process | states compared | steps after the resume | first difference | first op that noticed |\n"
      "|---|---|---|---|---|\n";
  for (const RankResume& r : ranks) {
    const std::string noticed = r.noticed.empty() ? "none" : fmt::format("step {}: {}", r.noticed_step, r.noticed);
    md += fmt::format("| {} | {} | {} | {} | {} |\n", r.rank, r.compared, r.steps, AfterText(r), noticed);
  }
  return md;
}

}  // namespace msprobe
