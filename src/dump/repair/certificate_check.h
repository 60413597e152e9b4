// The stamp that `msprobe certify` leaves beside the steps of a dump.
#pragma once

#include <string>
#include <vector>

#include "dump/repair/verify_finding.h"

namespace msprobe {

/// Beside the steps of a dump; readers of dumps do not look at it.
inline constexpr char kCertificateName[] = "msprobe_certificate.json";

/// Adds a note with its verdict, and a finding for files that are not, or no longer, what was certified. Nothing
/// without a stamp.
void CheckCertificate(const std::string& dump, std::vector<VerifyFinding>* findings);

}  // namespace msprobe
