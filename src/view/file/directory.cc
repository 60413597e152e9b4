#include "view/file/directory.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
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

/// A page of a report is told by its first bytes; other tools' pages may be many.
constexpr size_t kMostPages = 5000;
constexpr std::string_view kPageSuffix = ".html";

bool IsDumpPart(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) && (IsDigits(name.substr(prefix.size())) || name == "rank");
}

struct Walk {
  const GraphDirectory* directory;
  DirectoryContents* out;
  std::map<std::string, std::pair<std::set<std::string>, std::set<std::string>>> dumps;  // steps and ranks of each
  std::map<std::string, int64_t> changed;                                                // of each dump
  size_t entries = 0, pages = 0;
  bool full = false;

  /// `relative` has a dump.json: the recording is the directory with its steps.
  void AddDump(const std::string& relative) {
    std::string at = relative, rank, step;
    if (IsDumpPart(BaseName(at), "rank") && at != ".") rank = BaseName(at), at = Up(at);
    if (IsDumpPart(BaseName(at), "step") && at != ".") step = BaseName(at), at = Up(at);
    auto& [steps, ranks] = dumps[at];
    steps.insert(step);
    ranks.insert(rank);
    struct stat st {};
    if (stat(JoinPath(JoinPath(directory->real(), relative), "dump.json").c_str(), &st) == 0) {
      int64_t& newest = changed[at];
      newest = std::max<int64_t>(newest, st.st_mtim.tv_sec);
    }
  }
  static std::string Up(const std::string& path) {
    return Contains(path, "/") ? std::string(DirName(path)) : std::string(".");
  }
};

void Visit(Walk* walk, const fs::path& real, const std::string& relative, int depth) {
  std::error_code ec;
  fs::directory_iterator it(real, fs::directory_options::none, ec);
  if (ec) {
    walk->out->skipped.push_back({relative.empty() ? "." : relative,
                                  Msg("cannot be read ({}): check its permissions", KnownText(ec.message()))});
    return;
  }
  for (; !walk->full && it != fs::directory_iterator(); it.increment(ec)) {
    if (ec) return;
    if (++walk->entries > kMaxVisited || walk->out->files.size() >= kMaxFiles) {
      walk->full = true;
      walk->out->skipped.push_back(
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
      auto& runs = walk->out->runs;
      if (runs.empty() || runs.back() != run) runs.push_back(std::move(run));
      continue;
    }
    if (type == fs::file_type::directory) {
      if (depth < kMaxFolderDepth && name[0] != '.' && name != "dump_tensor_data")
        Visit(walk, it->path(), below, depth + 1);
      continue;
    }
    if (name == "dump.json" && type == fs::file_type::regular) walk->AddDump(relative.empty() ? "." : relative);
    if (name.ends_with(kPageSuffix) && type == fs::file_type::regular && ++walk->pages <= kMostPages) {
      FoundReport report{below, {}, {}};
      const auto head = ReadReportHead(it->path().string());
      if (head && ReadStamp(it->path().string(), &report.stamp)) {
        report.head = *head;
        walk->out->reports.push_back(std::move(report));
      }
      continue;
    }
    if (!IsShown(name)) continue;
    auto resolved = walk->directory->Resolve(below);
    if (resolved.ok()) {
      walk->out->files.push_back({below, resolved->second});
    } else {
      walk->out->skipped.push_back({below, resolved.status().text()});
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

DirectoryContents GraphDirectory::List() const {
  DirectoryContents out;
  if (!only_.empty()) {
    auto resolved = Resolve(only_);
    if (resolved.ok()) {
      out.files.push_back({only_, resolved->second});
    } else {
      out.skipped.push_back({only_, resolved.status().text()});
    }
    return out;
  }
  Walk walk{this, &out, {}, {}};
  Visit(&walk, real_, "", 0);
  for (const auto& [directory, parts] : walk.dumps) {
    out.dumps.push_back({directory, parts.first.size(), parts.second.size(), walk.changed[directory]});
  }
  std::sort(out.runs.begin(), out.runs.end());
  out.runs.erase(std::unique(out.runs.begin(), out.runs.end()), out.runs.end());
  const auto by_name = [](const auto& a, const auto& b) { return a.file < b.file; };
  std::sort(out.files.begin(), out.files.end(), by_name);
  std::sort(out.reports.begin(), out.reports.end(), by_name);
  std::sort(out.skipped.begin(), out.skipped.end(), by_name);
  return out;
}

StatusOr<std::pair<std::string, FileStamp>> GraphDirectory::Resolve(std::string_view file) const {
  MSP_RETURN_IF_ERROR(CheckRelative(file));
  if (!IsShown(file) || (!only_.empty() && file != only_)) {
    return BadInput(Msg("{} is not one of the files here: choose from the list of files", file));
  }
  return Inside(file);
}

StatusOr<std::string> GraphDirectory::ResolveReport(std::string_view file) const {
  MSP_RETURN_IF_ERROR(CheckRelative(file));
  if (!file.ends_with(kPageSuffix) || !only_.empty()) {
    return BadInput(Msg("{} is not one of the files here: choose from the list of files", file));
  }
  MSP_ASSIGN_OR_RETURN(auto found, Inside(file));
  return std::move(found.first);
}

StatusOr<std::pair<std::string, FileStamp>> GraphDirectory::Inside(std::string_view file) const {
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
