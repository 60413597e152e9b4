// The rules of the checklist about settings that belong together, and about those that only some stacks have.
#include <algorithm>

#include "base/text.h"
#include "checks/rule_tests.h"

namespace msprobe::rule_tests {
namespace {

using Verdict = CheckVerdict;

struct FamilyMember {
  std::string_view family, quantity, name;
};

constexpr FamilyMember kMembers[] = {
#define MSP_MEMBER(family, quantity, name) {#family, #quantity, name},
#include "checks/families.def"
#undef MSP_MEMBER
};

/// Whether files of one stack configure both, so that a name that one leaves out means the same in both.
bool OneStack(const CheckInput& input) { return input.target->dialects() == input.golden->dialects(); }

void Show(const Fact* fact, std::string_view name, std::optional<CheckShown>* out) {
  if (!*out) *out = CheckShown{};
  (*out)->value += ((*out)->value.empty() ? "" : ", ") + std::string(name) +
                   (fact ? " " + fact->value.Shown() : std::string(": not set"));
  if (fact && (*out)->origin.empty()) (*out)->origin = fact->origin;
}

/// The worst of the members of the family that is the quantity of the rule; `different` for one that differs.
Verdict Members(const CheckInput& input, Verdict different) {
  if (!input.golden) return Verdict::kSkip;
  Verdict out = Verdict::kSkip;
  std::optional<CheckShown> same[2];
  for (const FamilyMember& member : kMembers) {
    if (member.family != input.quantity) continue;
    const Fact *a = input.target->Find(member.quantity), *b = input.golden->Find(member.quantity);
    Verdict one = Verdict::kSkip;
    if (a && b) {
      one = CompareFacts(a, b, different);
    } else if ((a || b) && OneStack(input)) {
      one = Verdict::kWarn;  // it may say what the other takes without being told
    }
    if (one == Verdict::kWarn || one == Verdict::kFail) {
      Show(a, member.name, &input.shown[0]);
      Show(b, member.name, &input.shown[1]);
    }
    if (one == Verdict::kPass) {
      Show(a, member.name, &same[0]);
      Show(b, member.name, &same[1]);
    }
    out = std::max(out, one);
  }
  for (const size_t side : {0, 1}) {
    if (out == Verdict::kPass) input.shown[side] = std::move(same[side]);
  }
  return out;
}

}  // namespace

/// Of one that a side does not name nothing is known: stacks fuse by themselves, too.
Verdict SameFusion(const CheckInput& input) {
  if (!input.golden) return Verdict::kSkip;
  std::optional<CheckShown> same[2];
  bool differs = false;
  for (const FamilyMember& member : kMembers) {
    if (member.family != "fused_members") continue;
    const Fact *a = input.target->Find(member.quantity), *b = input.golden->Find(member.quantity);
    if (!a && !b) continue;
    const bool pass = Compare(input, member.quantity, Verdict::kWarn) == Verdict::kPass;
    differs = differs || !pass;
    Show(a, member.name, pass ? &same[0] : &input.shown[0]);
    Show(b, member.name, pass ? &same[1] : &input.shown[1]);
  }
  for (const size_t side : {0, 1}) {
    if (!differs) input.shown[side] = std::move(same[side]);
  }
  return differs ? Verdict::kWarn : Verdict::kPass;
}

Verdict EqualMembers(const CheckInput& input) { return Members(input, Verdict::kFail); }

/// Where both scale the rotary embedding; that one does is another rule's.
Verdict RotaryMembers(const CheckInput& input) {
  const bool both = input.golden && input.target->Find("rope_kind_name") && input.golden->Find("rope_kind_name");
  return both ? Members(input, Verdict::kFail) : Verdict::kSkip;
}

Verdict ScheduleMembers(const CheckInput& input) {
  if (!input.golden) return Verdict::kSkip;
  const std::string a = input.target->Word("schedule"), b = input.golden->Word("schedule");
  // Of one stack, whose schedule no file says, another length is worth a look.
  if (a.empty() && b.empty() && OneStack(input)) return Members(input, Verdict::kWarn);
  // Another kind is another rule's, and a constant rate has no such members.
  return a == b && !a.empty() && a != "constant" ? Members(input, Verdict::kFail) : Verdict::kSkip;
}

/// Files have other names where another stack reads them; how much of each is taken says the same in all.
Verdict BlendAndFiles(const CheckInput& input) {
  if (!input.golden) return Verdict::kSkip;
  if (OneStack(input)) return Members(input, Verdict::kWarn);
  const Verdict out = Compare(input, "data_blend", Verdict::kWarn);
  if (out == Verdict::kWarn) {
    Show(input.target->Find("data_blend"), "weights of the blend", &input.shown[0]);
    Show(input.golden->Find("data_blend"), "weights of the blend", &input.shown[1]);
  }
  return out == Verdict::kAsk ? Verdict::kSkip : out;
}

Verdict EqualIfTold(const CheckInput& input) {
  const bool told = input.golden && (input.target->Find(input.quantity) || input.golden->Find(input.quantity));
  return told ? Compare(input, input.quantity, Verdict::kFail) : Verdict::kSkip;
}

Verdict EqualOrWarnIfTold(const CheckInput& input) {
  const bool told = input.golden && (input.target->Find(input.quantity) || input.golden->Find(input.quantity));
  return told ? Compare(input, input.quantity, Verdict::kWarn) : Verdict::kSkip;
}

/// Stacks name the templates of one model in their own ways ("qwen", "qwen_25", "qwen2_5"), and leave some to the
/// tokenizer.
Verdict SameTemplate(const CheckInput& input) {
  const Verdict out = EqualIfTold(input);
  if (out != Verdict::kFail || OneStack(input)) return out;
  const auto letters = [](const std::string& name) { return name.substr(0, name.find_first_of("0123456789_-. ")); };
  const std::string a = letters(input.target->Word("chat_template")), b = letters(input.golden->Word("chat_template"));
  const auto open = [](const std::string& name) { return name == "tokenizer" || name == "default" || name == "auto"; };
  const bool of_one = a == b || (a == "chatml" && b == "qwen") || (a == "qwen" && b == "chatml");
  return of_one || open(a) || open(b) ? Verdict::kAsk : Verdict::kFail;
}

/// Shows the optimizers by their names; fused or paged they compute the same, with states in 8 bits they do not.
Verdict SameOptimizerStates(const CheckInput& input) {
  const Verdict out = EqualOrWarnIfTold(input);
  if (out != Verdict::kWarn) return out;
  for (const size_t side : {0, 1}) {
    const EffectiveRun* run = side == 0 ? input.target : input.golden;
    if (const Fact* fact = run->Find("optimizer")) {
      input.shown[side] = CheckShown{fact->value.Shown() + ", states in " + run->Word(input.quantity), fact->origin};
    }
  }
  return out;
}

}  // namespace msprobe::rule_tests
