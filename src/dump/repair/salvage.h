// What a JSON object file that was cut or damaged still holds, and that as a whole file again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/message.h"

namespace msprobe {

enum class SalvageKind {
  kDump,  // dump.json, debug.json: the entries are the members of "data"
  kFlat,  // stack.json, construct.json: the entries are the members of the file
};

struct Salvage {
  bool whole = false;       // nothing is wrong with the file
  uint64_t entries = 0;     // complete and readable
  uint64_t broken = 0;      // complete but not JSON: left out
  uint64_t bytes_lost = 0;  // behind the last complete entry
  Message trouble;          // one sentence part with the byte; empty when whole
};

/// Reads the whole file, one entry after the other; memory is that of the largest entry. With `write` the file that can
/// be made of it is handed out in pieces: each complete entry as it stands, in the layout of Python's json.dump, and
/// the closing braces. kBadInput when not even the beginning of an object is there, or of a dump's "data".
Status SalvageFile(const MappedFile& file, SalvageKind kind, Salvage* found,
                   const std::function<Status(std::string_view)>& write = {});

}  // namespace msprobe
