// Whether a dump is what its run meant to write: nothing cut, nothing missing, files that belong together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "dump/repair/verify_finding.h"

namespace msprobe {

struct RankCheck {
  std::string path;
  int step = 0;
  std::string rank;
  std::string state;  // of dump_summary.json; "unknown" without one
  bool readable = false;
  uint64_t ops = 0, items = 0, tensors = 0;
  uint64_t tensor_files = 0;  // named by the dump and in order
  uint64_t bytes = 0;         // of the JSON files and these
  std::vector<VerifyFinding> findings;
};

struct DumpCheck {
  std::vector<RankCheck> ranks;
  std::vector<VerifyFinding> findings;  // of the dump as a whole
  bool readable() const;                // every rank's dump could be read
  uint64_t count() const;               // findings, notes not counted
};

/// Reads every op of every rank once. Memory: the index of one dump.json (some 60 bytes an op), never its text.
StatusOr<DumpCheck> VerifyDump(const std::string& path);

Message CheckText(const DumpCheck& check);
std::string CheckJson(const DumpCheck& check);

}  // namespace msprobe
