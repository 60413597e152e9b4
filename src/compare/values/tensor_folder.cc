#include "compare/values/tensor_folder.h"

#include <limits.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"

namespace msprobe {
namespace {

std::string RealPath(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
  return real ? std::string(real.get()) : std::string();
}

bool IsInside(const std::string& path, const std::string& root) {
  return !path.empty() && (root == "/" || (StartsWith(path, root) && (path == root || path[root.size()] == '/')));
}

/// Empty for a name that may be looked up.
const char* WrongName(std::string_view name) {
  if (name.empty() || name.size() >= PATH_MAX / 2 || Contains(name, std::string_view("\0", 1)))
    return "is not a file name";
  if (name[0] == '/') return "is an absolute path, which a dump must not hold";
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    if (name.substr(at, end - at) == "..") return "leads out of the dump's directory by \"..\"";
    at = end + 1;
  }
  return nullptr;
}

/// `inside`: the folder itself is not a link out of `root`.
StatusOr<std::string> FindIn(const std::string& folder, bool inside, const std::string& root,
                             std::string_view data_name) {
  const std::string name = OneLine(data_name);
  if (const char* wrong = WrongName(data_name)) return BadInput(Msg("data_name \"{}\" {}", name, KnownText(wrong)));
  std::string path = JoinPath(folder, data_name);
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    return BadInput(errno == ENOENT ? Msg("{} does not exist", OneLine(path))
                                    : Msg("{}: {}", OneLine(path), KnownText(std::strerror(errno))));
  }
  const bool plain = S_ISREG(info.st_mode) && data_name.find('/') == std::string_view::npos;
  if (!(plain && inside) && !IsInside(RealPath(path), root)) {
    return BadInput(Msg("{} is a link that leads out of the dump's directory", OneLine(path)));
  }
  if (!S_ISREG(info.st_mode) && (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode))) {
    return BadInput(Msg("{} is not a regular file", OneLine(path)));
  }
  return path;
}

}  // namespace

TensorFolder::TensorFolder(const std::string& dump_path) {
  const std::string directory(DirName(dump_path));
  root_ = RealPath(directory.empty() ? "." : directory);
  folder_ = JoinPath(directory, "dump_tensor_data");
  folder_inside_ = !root_.empty() && IsInside(RealPath(folder_), root_);
}

StatusOr<std::string> TensorFolder::Find(std::string_view data_name) const {
  return FindIn(folder_, folder_inside_, root_, data_name);
}

StatusOr<std::string> FindBelow(const std::string& directory, std::string_view name) {
  const std::string root = RealPath(directory);
  return FindIn(directory, !root.empty(), root, name);
}

}  // namespace msprobe
