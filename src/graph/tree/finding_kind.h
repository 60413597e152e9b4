// What findings about graphs are of.
#pragma once

#include <cstdint>
#include <string_view>

namespace msprobe {

enum class FindingKind : uint8_t {
  kNone,
  kFirstError,
  kBadModule,
  kFirstOverflow,
  kBadParameter,
  kBadGradient,
  // Of communication.
  kMissingCall,
  kCallOrder,
  kNoPartner,
  kCallData,
  kCallRoot,
  // Of merged ranks.
  kReplica,
  kLayout,
  kSuspectRank,
};

/// What an origin of NaN or of a difference leaves behind; the others are faults of their own.
constexpr bool FollowsFromOrigin(FindingKind kind) {
  return kind >= FindingKind::kFirstError && kind <= FindingKind::kBadGradient;
}

/// "first_error"; "" of kNone.
std::string_view FindingKindText(FindingKind kind);

}  // namespace msprobe
