// construct.json line by line for those who need all of it: views into the file, which stays mapped.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/message.h"
#include "base/slot_table.h"
#include "base/status.h"

namespace msprobe {

struct ConstructLine {
  std::string_view name;
  std::string_view parent;  // "" for null or ""
  int micro_step = 0;
};

struct ConstructLines {
  static StatusOr<ConstructLines> Open(const std::string& path);
  /// The position of that entry, or SlotTable::kNone.
  uint32_t Find(std::string_view name) const {
    return index.Find(HashName(name), [&](uint32_t i) { return entries[i].name == name; });
  }
  std::vector<ConstructLine> entries;       // duplicates removed, first position and last value as in a Python dict
  SlotTable index;                          // of the entries by name; may be cleared when nobody asks any more
  std::optional<int> megatron_micro_steps;  // value of "megatron_micro_step_number"
  Message truncated;                        // as DumpFile::truncated()
  std::unique_ptr<MappedFile> file;
  std::deque<std::string> unescaped;  // names that are not in the file as they are meant
};

}  // namespace msprobe
