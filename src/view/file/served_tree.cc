#include "view/file/served_tree.h"

#include <dirent.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"

namespace msprobe::view {
namespace {

constexpr size_t kMaxEntries = 5000;   // of a listing
constexpr size_t kMaxLookedAt = 2000;  // names that tell what a directory is; tensors lie beside them, a file each
constexpr int kMaxParts = 64;

using Dir = std::unique_ptr<DIR, int (*)(DIR*)>;

std::string RealPathOf(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
  return real ? std::string(real.get()) : std::string();
}

/// Parts joined anew; kUsage for what must not be in a request.
StatusOr<std::string> Normal(std::string_view path) {
  const auto refuse = [&](const Message& why) {
    return UsageError(Msg("{} {}: browse the served directory and choose again", OneLine(path.substr(0, 200)), why));
  };
  if (path.size() >= PATH_MAX || path.find('\0') != std::string_view::npos || !IsUtf8(path)) {
    return refuse(Msg("is not a path"));
  }
  if (path.starts_with('/')) return refuse(Msg("is an absolute path"));
  std::string out;
  int parts = 0;
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..") return refuse(Msg("points out of the directory"));
    if (++parts > kMaxParts) return refuse(Msg("is too deep"));
    if (!out.empty()) out += '/';
    out += part;
  }
  return out;
}

bool IsNumbered(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) && IsDigits(name.substr(prefix.size()));
}

DumpKind KindOf(const std::string& directory) {
  if (IsRegularFile(JoinPath(directory, "dump.json"))) return DumpKind::kRank;
  const Dir dir(opendir(directory.c_str()), &closedir);
  if (!dir) return DumpKind::kNone;
  DumpKind kind = DumpKind::kNone;
  size_t seen = 0;
  for (const dirent* entry; kind != DumpKind::kRun && seen < kMaxLookedAt && (entry = readdir(dir.get())); ++seen) {
    if (IsNumbered(entry->d_name, "step")) kind = DumpKind::kRun;
    // A dump of a single process has a directory "rank" without a number.
    if (IsNumbered(entry->d_name, "rank") || std::strcmp(entry->d_name, "rank") == 0) kind = DumpKind::kStep;
  }
  return kind;
}

}  // namespace

std::string_view DumpKindName(DumpKind kind) {
  switch (kind) {
    case DumpKind::kRank: return "rank";
    case DumpKind::kStep: return "step";
    case DumpKind::kRun: return "run";
    case DumpKind::kNone: break;
  }
  return "";
}

// A path without links is its own real path.
StatusOr<std::string> ServedTree::Existing(std::string_view path) const {
  MSP_ASSIGN_OR_RETURN(std::string relative, Normal(path));
  const std::string whole = relative.empty() ? real_ : JoinPath(real_, relative);
  const std::string real = RealPathOf(whole);
  if (real.empty()) {
    return BadInput(Msg("{} cannot be opened ({}): browse the served directory and choose again", OneLine(path),
                        KnownText(std::strerror(errno))));
  }
  if (real != whole) {
    return BadInput(Msg("{} is or lies behind a link: serve the directory it points to", OneLine(path)));
  }
  return relative;
}

StatusOr<std::string> ServedTree::Directory(std::string_view path) const {
  MSP_ASSIGN_OR_RETURN(std::string relative, Existing(path));
  if (relative.empty() || IsDirectory(JoinPath(real_, relative))) return relative;
  return BadInput(Msg("{} is not a directory: browse the served directory and choose again", OneLine(path)));
}

StatusOr<std::string> ServedTree::File(std::string_view path) const {
  MSP_ASSIGN_OR_RETURN(std::string relative, Existing(path));
  if (!relative.empty() && IsRegularFile(JoinPath(real_, relative))) return relative;
  return BadInput(Msg("{} is not a file: browse the served directory and choose again", OneLine(path)));
}

StatusOr<std::string> ServedTree::Place(std::string_view path) const {
  MSP_ASSIGN_OR_RETURN(std::string relative, Normal(path));
  for (size_t at = 0; at < relative.size();) {
    const size_t end = std::min(relative.find('/', at), relative.size());
    if (relative[at] == '.') {
      return UsageError(Msg("{} has a hidden part: give a name that does not begin with a dot", OneLine(path)));
    }
    struct stat st {};
    const std::string up_to_here = JoinPath(real_, std::string_view(relative).substr(0, end));
    if (lstat(up_to_here.c_str(), &st) != 0) {
      at = end + 1;
      if (errno == ENOENT) continue;  // nor is what is below it
      return BadInput(Msg("{} cannot be used ({}): give another name", OneLine(path), KnownText(std::strerror(errno))));
    }
    const bool last = end == relative.size();
    if (!S_ISDIR(st.st_mode) && !(last && S_ISREG(st.st_mode))) {
      return BadInput(
          Msg("{} goes through what is not a directory (links are not followed): give another name", OneLine(path)));
    }
    at = end + 1;
  }
  return relative;
}

StatusOr<TreeListing> ServedTree::List(std::string_view path) const {
  TreeListing out;
  MSP_ASSIGN_OR_RETURN(out.path, Directory(path));
  const std::string here = out.path.empty() ? real_ : JoinPath(real_, out.path);
  const Dir dir(opendir(here.c_str()), &closedir);
  if (!dir) {
    return BadInput(Msg("{} cannot be read ({}): check its permissions", out.path, KnownText(std::strerror(errno))));
  }
  out.kind = KindOf(here);
  while (const dirent* entry = readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name.starts_with('.') || !IsUtf8(name)) continue;
    struct stat st {};
    const std::string below = JoinPath(here, name);
    if (lstat(below.c_str(), &st) != 0) continue;
    const bool yaml = S_ISREG(st.st_mode) && (name.ends_with(".yaml") || name.ends_with(".yml"));
    if (!S_ISDIR(st.st_mode) && !yaml) continue;
    if (out.directories.size() + out.files.size() >= kMaxEntries) {
      out.cut = true;
      break;
    }
    if (yaml) {
      out.files.emplace_back(name);
    } else {
      out.directories.push_back({std::string(name), KindOf(below)});
    }
  }
  // step2 before step10.
  const auto natural = [](const std::string& a, const std::string& b) { return strverscmp(a.c_str(), b.c_str()) < 0; };
  std::sort(out.directories.begin(), out.directories.end(),
            [&](const auto& a, const auto& b) { return natural(a.name, b.name); });
  std::sort(out.files.begin(), out.files.end(), natural);
  return out;
}

StatusOr<std::string> ServedTree::Inside(const std::string& absolute) const {
  std::string real = absolute.starts_with('/') && absolute.find('\0') == std::string::npos ? RealPathOf(absolute) : "";
  if (real.empty()) {
    return BadInput(
        Msg("{} is not there any more: keep the dump where it was when the graph was made", OneLine(absolute)));
  }
  const std::string inside = real_ == "/" ? real_ : real_ + "/";
  if (real == real_ || real.starts_with(inside)) return real;
  return BadInput(Msg("{} lies outside of the served directory: serve a directory that holds the graph and the dump",
                      OneLine(absolute)));
}

}  // namespace msprobe::view
