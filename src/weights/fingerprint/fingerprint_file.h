// Fingerprints as files: one for each process.
#pragma once

#include "weights/fingerprint/fingerprint.h"

namespace msprobe {

/// One JSON object.
std::string FingerprintText(const Fingerprint& print);
Status WriteFingerprint(const Fingerprint& print, const std::string& path);

/// `what` names the text in errors. kBadInput for one that no release writes.
StatusOr<Fingerprint> ParseFingerprint(std::string_view text, const std::string& what);

/// True for a file of WriteFingerprint(), and a directory that holds such files.
bool IsFingerprint(const std::string& path);

/// A file, or all files of a directory: those of the ranks of one moment.
StatusOr<std::vector<Fingerprint>> ReadFingerprints(const std::string& path);

}  // namespace msprobe
