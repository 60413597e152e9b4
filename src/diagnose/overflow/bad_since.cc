#include "diagnose/overflow/bad_since.h"

#include "base/words/translate.h"

namespace msprobe {

Message BadSinceMessage(const BadSince& since) {
  const Message step = since.step.empty() ? KnownText("the step") : Message(since.step);
  switch (since.kind) {
    case BadSince::Kind::kUnknown: return {};
    case BadSince::Kind::kBeforeStep: return Msg("it was already bad when {} began", step);
    case BadSince::Kind::kAfterStep: return Msg("it became bad after {}", step);
    case BadSince::Kind::kWasClean:
      return Msg("in {} it was clean ({}): the optimizer's step between made it bad", step, since.value);
    case BadSince::Kind::kWasBad: return Msg("in {} it was bad, too ({})", step, since.value);
  }
  return {};
}

std::string BadSinceText(const BadSince& since, Language language) {
  return InLanguage(BadSinceMessage(since), language);
}

}  // namespace msprobe
