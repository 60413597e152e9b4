// What lies below the served directory beside .vis.db files: dumps, mappings, tensors. No name leads out of it, and no
// link is followed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace msprobe::view {

/// What a directory is to graph_visualize.
enum class DumpKind : uint8_t { kNone, kRank, kStep, kRun };
std::string_view DumpKindName(DumpKind kind);

struct TreeListing {
  std::string path;  ///< relative to the root, "" for the root itself
  DumpKind kind = DumpKind::kNone;
  struct Directory {
    std::string name;
    DumpKind kind = DumpKind::kNone;
  };
  std::vector<Directory> directories;
  std::vector<std::string> files;  ///< YAML files
  bool cut = false;                ///< there are more
};

class ServedTree {
 public:
  /// `real` is a real path.
  explicit ServedTree(std::string real) : real_(std::move(real)) {}
  const std::string& real() const { return real_; }

  /// The relative path without empty parts and "."; "" is the root. kUsage for absolute paths, ".." and characters that
  /// no file has, kBadInput where there is no such directory, or a link on the way.
  StatusOr<std::string> Directory(std::string_view path) const;
  /// The same for a regular file.
  StatusOr<std::string> File(std::string_view path) const;
  /// The same for what may be made: parts that exist are directories, or at the end a file. Hidden names are refused.
  StatusOr<std::string> Place(std::string_view path) const;
  /// Hidden directories, links and names that are not UTF-8 are left out.
  StatusOr<TreeListing> List(std::string_view path) const;
  /// The real path of an absolute one that lies below the root; kBadInput for others.
  StatusOr<std::string> Inside(const std::string& absolute) const;

 private:
  StatusOr<std::string> Existing(std::string_view path) const;
  std::string real_;
};

}  // namespace msprobe::view
