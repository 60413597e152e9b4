// A directory for what is needed only while a command runs.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace msprobe {

/// {parent}/.{kind}_{host}_{pid}, empty, gone with the object. A command that was killed leaves its own behind: the
/// next one on the same host removes it.
class TempDirectory {
 public:
  /// `kind` is a plain word.
  static StatusOr<TempDirectory> Create(const std::string& parent, std::string_view kind);
  TempDirectory(TempDirectory&& other) noexcept;
  TempDirectory& operator=(TempDirectory&&) = delete;
  ~TempDirectory();
  const std::string& path() const { return path_; }

 private:
  TempDirectory() = default;
  std::string path_;
  int lock_ = -1;  // of a file in it: who can take it knows that the owner is gone
};

}  // namespace msprobe
