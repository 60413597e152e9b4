#include "certify/resume_numbers.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "certify/resume_states.h"

namespace msprobe {
namespace {

/// The innermost object of the program that holds a number; "" for a variable. Functions are no objects.
std::string OwnerOf(const JsonValue* owners, std::string_view name) {
  for (size_t dot = name.rfind('.'); dot != std::string_view::npos; dot = name.rfind('.')) {
    name = name.substr(0, dot);
    if (MemberOf(owners, name) != nullptr) return std::string(name);
  }
  return "";
}

struct Effect {
  std::string name;
  int64_t step = 0;
};

/// What follows: states of the straight and of the resumed run, some steps after the resume.
class Aftermath {
 public:
  Aftermath(int64_t save_at, const JsonValue& straight, const JsonValue& killed, const JsonValue& resumed)
      : save_at_(save_at), straight_(straight), killed_(killed), resumed_(resumed) {}

  /// The first state of an object that the resume put back and that is another after some steps.
  std::optional<Effect> Of(const std::string& owner) const {
    const JsonValue* list = straight_.Find("before");
    if (list == nullptr || !list->IsArray()) return std::nullopt;
    for (const JsonValue& entry : list->Items()) {
      const int64_t step = IntAt(&entry, "step");
      if (step <= save_at_) continue;
      const JsonValue* states = MemberOf(&entry, "states");
      if (states == nullptr || !states->IsObject()) continue;
      for (const auto& kind : states->Members()) {
        // Other numbers of an object may be counts like this one.
        if (kind.name == "number" || kind.name == "random" || !kind.value.IsObject()) continue;
        for (const auto& state : kind.value.Members()) {
          if (!state.name.starts_with(owner + ".")) continue;
          if (WasRestored(kind.name, state.name) && Differs(kind.name, state.name, step)) {
            return Effect{std::string(state.name), step};
          }
        }
      }
    }
    return std::nullopt;
  }

 private:
  static std::string State(const JsonValue& run, int64_t step, std::string_view kind, std::string_view name) {
    return TextAt(MemberOf(MemberOf(BeforeStep(run, step), "states"), kind), name);
  }

  bool WasRestored(std::string_view kind, std::string_view name) const {
    const std::string was = State(killed_, save_at_, kind, name);
    return was != kMissingState && was == State(resumed_, save_at_, kind, name) &&
           was == State(straight_, save_at_, kind, name);
  }

  bool Differs(std::string_view kind, std::string_view name, int64_t step) const {
    const std::string is = State(resumed_, step, kind, name);
    return is != kMissingState && is != State(straight_, step, kind, name);
  }

  int64_t save_at_;
  const JsonValue &straight_, &killed_, &resumed_;
};

/// Adds a name to those told with the same explanation.
void Tell(const LostName& name, const std::string& explanation, std::vector<LostState>* told) {
  for (LostState& s : *told) {
    if (s.kind != "number" || s.explanation != explanation) continue;
    s.names.push_back(name);
    return;
  }
  told->push_back({.kind = "number", .names = {name}, .explanation = explanation});
}

}  // namespace

void JudgeNumbers(int64_t save_at, const JsonValue& straight, const JsonValue& killed, const JsonValue& resumed,
                  RankResume* result) {
  const JsonValue* owners = MemberOf(BeforeStep(killed, save_at), "owners");
  const Aftermath aftermath(save_at, straight, killed, resumed);
  std::vector<LostState> left;
  for (LostState& suspect : result->suspects) {
    if (suspect.kind != "number") {
      left.push_back(std::move(suspect));
      continue;
    }
    LostState others{.kind = suspect.kind, .names = {}, .explanation = suspect.explanation};
    for (LostName& name : suspect.names) {
      const std::string owner = name.is == kMissingState ? "" : OwnerOf(owners, name.name);
      const auto effect = owner.empty() || result->after ? std::nullopt : aftermath.Of(owner);
      if (effect) {
        const auto why = fmt::format("at the beginning of step {} {} is another, too", effect->step, effect->name);
        Tell(name, why, &result->lost);
      } else if (!owner.empty() && name.first && TextAt(owners, owner) == "saves") {
        Tell(name, "", &result->perhaps);
      } else {
        others.names.push_back(std::move(name));
      }
    }
    if (!others.names.empty()) left.push_back(std::move(others));
  }
  result->suspects = std::move(left);
}

}  // namespace msprobe
