#include "view/file/directory.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "monitor/rank_directory.h"
#include "sheet/check_names.h"
#include "view/file/vis_json_file.h"

namespace msprobe::view {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".vis.db", kTrendSuffix = ".trend.db";
constexpr int kMaxFolderDepth = 6;
constexpr size_t kMaxFiles = 2000;
constexpr size_t kMaxVisited = 200000;  // a dump of tensors may lie below, a file each

StatusOr<std::string> RealPath(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
  if (real == nullptr) return BadInput(KnownText(std::strerror(errno)));
  return std::string(real.get());
}

bool IsShown(std::string_view file) {
  return EndsWith(file, kSuffix) || IsVisJsonName(file) || IsTrendName(file) || IsCheckFloat64Name(file);
}

struct Walk {
  const GraphDirectory* directory;
  std::vector<FoundFile>* files;
  std::vector<SkippedFile>* skipped;
  std::vector<std::string>* runs;
  size_t entries = 0;
  bool full = false;
};

void Visit(Walk* walk, const fs::path& real, const std::string& relative, int depth) {
  std::error_code ec;
  fs::directory_iterator it(real, fs::directory_options::none, ec);
  if (ec) {
    walk->skipped->push_back({relative.empty() ? "." : relative,
                              Msg("cannot be read ({}): check its permissions", KnownText(ec.message()))});
    return;
  }
  for (; !walk->full && it != fs::directory_iterator(); it.increment(ec)) {
    if (ec) return;
    if (++walk->entries > kMaxVisited || walk->files->size() >= kMaxFiles) {
      walk->full = true;
      walk->skipped->push_back(
          {relative.empty() ? "." : relative, Msg("holds too many files to search: serve a directory further down")});
      return;
    }
    const std::string name = it->path().filename().string();
    const std::string below = relative.empty() ? name : JoinPath(relative, name);
    std::error_code type_ec;
    const fs::file_type type = it->symlink_status(type_ec).type();
    const bool of_rank = type == fs::file_type::directory && RankOfDirectory(name).has_value();
    if (of_rank || (relative.empty() && name == "monitor.series")) {
      std::string run = relative.empty() ? "." : relative;
      if (walk->runs != nullptr && (walk->runs->empty() || walk->runs->back() != run)) {
        walk->runs->push_back(std::move(run));
      }
      continue;
    }
    if (type == fs::file_type::directory) {
      if (depth < kMaxFolderDepth && name[0] != '.') Visit(walk, it->path(), below, depth + 1);
      continue;
    }
    if (!IsShown(name)) continue;
    auto resolved = walk->directory->Resolve(below);
    if (resolved.ok()) {
      walk->files->push_back({below, resolved->second});
    } else {
      walk->skipped->push_back({below, resolved.status().text()});
    }
  }
}

Status CheckRelative(std::string_view file) {
  if (file.empty() || file.size() >= PATH_MAX || file[0] == '/' || file.find('\0') != std::string_view::npos) {
    return UsageError(Msg("file is not a relative path: choose from the list of files"));
  }
  for (size_t at = 0; at <= file.size();) {
    const size_t end = std::min(file.find('/', at), file.size());
    if (file.substr(at, end - at) == "..")
      return UsageError(Msg("{} points out of the directory: choose from the list of files", file));
    at = end + 1;
  }
  return OkStatus();
}

}  // namespace

bool IsTrendName(std::string_view file) { return EndsWith(file, kTrendSuffix); }

bool ReadStamp(const std::string& path, FileStamp* stamp) {
  struct stat st {};
  if (stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return false;
  *stamp = {st.st_dev, st.st_ino, static_cast<uint64_t>(st.st_size), st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
  return true;
}

StatusOr<GraphDirectory> GraphDirectory::Open(const std::string& path) {
  GraphDirectory directory;
  directory.shown_ = path;
  auto real = RealPath(path);
  if (!real.ok())
    return BadInput(
        Msg("{} cannot be opened ({}): give the directory with the .vis.db files", path, real.status().text()));
  directory.real_ = *std::move(real);
  if (IsDirectory(directory.real_)) return directory;
  if (!IsRegularFile(directory.real_) || !IsShown(directory.real_)) {
    return BadInput(Msg(
        "{} is neither a directory nor a .vis.db or .trend.db file: give the directory with the .vis.db files", path));
  }
  directory.only_ = BaseName(directory.real_);
  directory.real_ = DirName(directory.real_);
  return directory;
}

void GraphDirectory::List(std::vector<FoundFile>* files, std::vector<SkippedFile>* skipped,
                          std::vector<std::string>* runs) const {
  if (!only_.empty()) {
    auto resolved = Resolve(only_);
    if (resolved.ok()) {
      files->push_back({only_, resolved->second});
    } else {
      skipped->push_back({only_, resolved.status().text()});
    }
    return;
  }
  Walk walk{this, files, skipped, runs};
  Visit(&walk, real_, "", 0);
  if (runs != nullptr) {
    std::sort(runs->begin(), runs->end());
    runs->erase(std::unique(runs->begin(), runs->end()), runs->end());
  }
  std::sort(files->begin(), files->end(), [](const auto& a, const auto& b) { return a.file < b.file; });
  std::sort(skipped->begin(), skipped->end(), [](const auto& a, const auto& b) { return a.file < b.file; });
}

StatusOr<std::pair<std::string, FileStamp>> GraphDirectory::Resolve(std::string_view file) const {
  MSP_RETURN_IF_ERROR(CheckRelative(file));
  if (!IsShown(file) || (!only_.empty() && file != only_)) {
    return BadInput(Msg("{} is not one of the files here: choose from the list of files", file));
  }
  auto real = RealPath(JoinPath(real_, file));
  if (!real.ok()) return BadInput(Msg("{} does not exist: choose from the list of files", file));
  const std::string inside = real_ == "/" ? real_ : real_ + "/";
  if (!StartsWith(*real, inside))
    return UsageError(Msg("{} is a link out of the directory: serve the directory it points to", file));
  FileStamp stamp;
  if (!ReadStamp(*real, &stamp)) return BadInput(Msg("{} is not a regular file: choose from the list of files", file));
  return std::make_pair(*std::move(real), stamp);
}

StatusOr<std::string> GraphDirectory::ResolveRun(std::string_view run) const {
  MSP_RETURN_IF_ERROR(CheckRelative(run));
  auto real = RealPath(JoinPath(real_, run));
  if (!real.ok() || !IsDirectory(*real) || !only_.empty()) {
    return BadInput(Msg("{} does not exist: choose from the list of files", run));
  }
  if (*real != real_ && !StartsWith(*real, real_ == "/" ? real_ : real_ + "/")) {
    return UsageError(Msg("{} is a link out of the directory: serve the directory it points to", run));
  }
  return *std::move(real);
}

}  // namespace msprobe::view
