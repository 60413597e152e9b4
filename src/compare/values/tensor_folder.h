// Where the values of a dump lie: dump_tensor_data beside dump.json. Names come from the dump, so nothing outside of
// its directory is opened.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace msprobe {

class TensorFolder {
 public:
  TensorFolder() = default;
  /// Of the dump.json or debug.json at `dump_path`.
  explicit TensorFolder(const std::string& dump_path);

  /// Path of the file with this data_name. kBadInput, one line, when it does not exist, is not a regular file, or when
  /// the name or a link on the way leads out of the directory of the dump.
  StatusOr<std::string> Find(std::string_view data_name) const;
  const std::string& path() const { return folder_; }

 private:
  std::string folder_;
  std::string root_;            // the directory of the dump, without links; "" when there is none
  bool folder_inside_ = false;  // the folder is not a link out of it
};

/// Path of a file below `directory`, which belongs to no dump.json, as TensorFolder::Find().
StatusOr<std::string> FindBelow(const std::string& directory, std::string_view name);

}  // namespace msprobe
