// What any tool concludes about anything, and what a command makes of all its judgements: one headline, one exit code.
// No command decides these by itself, so none can print a finding and conclude the opposite.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/message.h"
#include "base/status.h"

namespace msprobe {

enum class JudgementKind : uint8_t {
#define MSP_JUDGEMENT(id, name, weight, words) id,
#include "judgement/judgement_kinds.def"
#undef MSP_JUDGEMENT
};

/// How much a kind weighs. What is open was not decided: it is neither good nor a finding.
enum class JudgementWeight : uint8_t { kSame, kExplained, kOpen, kPerson, kSuspect, kFault };

/// "bug", "round_off": for programs.
std::string_view NameOf(JudgementKind kind);
/// "no more than rounding": for people.
Message WordsOf(JudgementKind kind);
JudgementWeight WeightOf(JudgementKind kind);

struct Judgement {
  JudgementKind kind = JudgementKind::kNotSeen;
  Message about;                  // what is judged: a weight, a stage, a law; a name or a sentence
  std::optional<double> figure;   // how far it is off, in the units of `basis`
  std::vector<Message> evidence;  // what was found, a sentence each
  Message basis;                  // what it was judged by: a band, rounding of float32, a rule
  std::vector<Message> not_seen;  // what of it was not looked at
  bool asked = true;              // false: nothing was given that could show it, and nobody asked for it
};

/// The kind that counts. What is good as far as it was looked at, and was looked at in part, is not seen.
JudgementKind KindOf(const Judgement& judgement);

struct Conclusion {
  JudgementKind kind = JudgementKind::kNotSeen;  // the worst of what was asked; kNotSeen where nothing was
  std::optional<Judgement> worst;                // the first of this kind
  std::array<size_t, static_cast<size_t>(JudgementKind::kBug) + 1> counts{};
  std::vector<Judgement> judgements;  // all, in the order given
};

Conclusion Conclude(std::vector<Judgement> judgements);

/// One line: "bug: layers.1.mlp.weight: it is 1.25 times the golden value".
Message HeadlineOf(const Conclusion& conclusion);

/// What lets a command end with 1.
enum class FailOn : uint8_t { kNever, kBug, kSuspicious, kAskPerson, kCannotSay, kRoundOff };
/// "bug", "suspicious", "ask-a-person", "cannot-say", "round-off", "never".
std::optional<FailOn> ParseFailOn(std::string_view text);
inline constexpr std::array<std::string_view, 6> kFailOnNames{"never",        "bug",        "suspicious",
                                                              "ask-a-person", "cannot-say", "round-off"};

/// How a command ends.
struct ExitRule {
  FailOn fail_on = FailOn::kNever;
  bool undecided = false;  // what is open ends with 5
};

/// `given`: --fail-on, which is the same in all commands: 1 for what is as bad as that or worse, 5 for what stays open
/// below it, else 0. `usual`: what the command does without it. `finding`: its own words for 1.
Status StatusOf(const Conclusion& conclusion, std::optional<FailOn> given, const ExitRule& usual, Message finding = {});

}  // namespace msprobe
