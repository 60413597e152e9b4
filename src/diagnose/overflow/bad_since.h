// Since when a parameter holds NaN or infinities.
#pragma once

#include <cstdint>
#include <string>

#include "base/language.h"
#include "base/message.h"

namespace msprobe {

struct BadSince {
  enum class Kind : uint8_t {
    kUnknown,
    kBeforeStep,  ///< `step` is the first that was dumped
    kAfterStep,   ///< `step` does not show the parameter
    kWasClean,    ///< in `step`, where it was `value`
    kWasBad,      ///< likewise
  };
  Kind kind = Kind::kUnknown;
  std::string step;   ///< "step0"; "" for a dump of one step by itself
  std::string value;  ///< "float32 [2, 32], max inf, ..."
};

/// "" where it is not known.
Message BadSinceMessage(const BadSince& since);
std::string BadSinceText(const BadSince& since, Language language);

}  // namespace msprobe
