#include "graph/tree/finding_kind.h"

namespace msprobe {

std::string_view FindingKindText(FindingKind kind) {
  switch (kind) {
    case FindingKind::kFirstError: return "first_error";
    case FindingKind::kBadModule: return "bad_module";
    case FindingKind::kFirstOverflow: return "first_overflow";
    case FindingKind::kBadParameter: return "bad_parameter";
    case FindingKind::kBadGradient: return "bad_gradient";
    case FindingKind::kMissingCall: return "missing_call";
    case FindingKind::kCallOrder: return "call_order";
    case FindingKind::kNoPartner: return "no_partner";
    case FindingKind::kCallData: return "call_data";
    case FindingKind::kCallRoot: return "call_root";
    case FindingKind::kReplica: return "replica";
    case FindingKind::kLayout: return "layout";
    case FindingKind::kSuspectRank: return "suspect_rank";
    case FindingKind::kNone: break;
  }
  return {};
}

}  // namespace msprobe
