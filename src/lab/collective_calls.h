// The communications of a dump, each with the calls of the other ranks that it belongs to.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/communication.h"
#include "dump/reader.h"
#include "lab/call_plan.h"

namespace msprobe {

class CollectiveCalls {
 public:
  /// Reads the dumps of the other ranks, which lie beside that of this one in the directory of the step. `dump`
  /// outlives it.
  Status Open(const DumpFile& dump);

  /// The line for the process that makes the call again. kBadInput: why it cannot be made.
  StatusOr<std::string> Request(const PlannedCall& call) const;

 private:
  const DumpFile& DumpOf(size_t rank) const;
  Status CheckEvent(const CommCall& call, const CommEvent& event) const;

  const DumpFile* own_ = nullptr;
  int own_rank_ = 0;
  uint64_t ranks_ = 0;  // of the run; 0: not known
  std::map<int, DumpFile> others_;
  std::map<int, std::string> broken_;  // why a dump could not be read
  CommGraph graph_;
};

}  // namespace msprobe
