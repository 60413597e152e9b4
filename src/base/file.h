// Files: read-only maps, outputs that appear whole or not at all, directories and their permissions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace msprobe {

inline constexpr unsigned kDirMode = 0750;
inline constexpr unsigned kFileMode = 0640;

/// A whole file mapped read-only. The pages are the kernel's, so a 10 GB file costs address space, not memory. A small
/// file is a copy instead: where there are many, making and removing their maps would take longer than reading them.
class MappedFile {
 public:
  /// kBadInput when the path is missing, not a regular file, or not readable.
  static StatusOr<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&&) noexcept;
  MappedFile& operator=(MappedFile&&) noexcept;
  ~MappedFile();
  std::string_view text() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  /// Tells the kernel that bytes [begin, end) will not be read again soon.
  void Release(size_t begin, size_t end) const;
  /// Tells the kernel that bytes [begin, end) will be read soon.
  void WillNeed(size_t begin, size_t end) const;

 private:
  MappedFile() = default;
  const char* data_ = nullptr;
  size_t size_ = 0;
  bool copied_ = false;
  std::string path_;
};

/// A file written under a temporary name in its final directory and put in place by a commit. Without one (an error, an
/// exception, Ctrl-C) the temporary file is removed and a file already at `path` stays as it was.
class OutputFile {
 public:
  static StatusOr<OutputFile> Create(const std::string& path);
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();
  /// Buffered; kInternal with the path and the reason (disk full, ...) when the kernel refuses.
  Status Write(std::string_view bytes);
  /// Nothing more is written for now: what is buffered goes to the file, and the buffer's memory is free.
  Status Rest();
  /// Replaces what is at path().
  Status Commit();
  /// Commit for results: on disk before it has its name, and under a free name ("x_2.csv") when another result has
  /// path() already, so path() may change. `path` (may be empty) takes the place of path() first.
  Status CommitResult(const std::string& path = {});
  const std::string& path() const { return path_; }
  uint64_t bytes_written() const { return written_; }

 private:
  OutputFile() = default;
  Status Flush();
  Status Close(bool sync);
  int fd_ = -1;
  std::string path_, temp_, buffer_;
  uint64_t written_ = 0;
};

/// A name for a temporary file beside `path`, for libraries (SQLite, xlsx) that open files themselves; the object
/// removes it (and "-wal", "-shm", "-journal" companions) unless it was renamed to `path` with mode 0640.
class TempPath {
 public:
  explicit TempPath(const std::string& final_path);
  TempPath(const TempPath&) = delete;
  TempPath& operator=(const TempPath&) = delete;
  ~TempPath();
  const std::string& path() const { return temp_; }
  /// Where the file is after a commit.
  const std::string& final_path() const { return final_; }
  Status Commit();
  /// As OutputFile::CommitResult().
  Status CommitResult();

 private:
  std::string final_, temp_;
  bool committed_ = false;
};

/// Creates `path` and its parents with mode 0750 and checks that files can be made in it.
/// kBadInput with the failing part of the path and the reason otherwise.
Status MakeOutputDir(const std::string& path);

bool IsDirectory(const std::string& path);
bool IsRegularFile(const std::string& path);
bool PathExists(const std::string& path);
/// kBadInput for a path that does not exist: "{path} does not exist: {advice}", or where a link to nothing leads.
Status Missing(const std::string& path, std::string_view advice);
/// Names in a directory, sorted bytewise, without "." and "..".
StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);
std::string JoinPath(std::string_view a, std::string_view b);
std::string_view BaseName(std::string_view path);
std::string_view DirName(std::string_view path);

/// Local time as YYYYmmddHHMMSS, as result files are named.
std::string TimestampNow();

}  // namespace msprobe
