#include "view/matching/match_store.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace msprobe::view {
namespace {

constexpr std::string_view kDbSuffix = ".vis.db", kEditsSuffix = ".vis.match.json", kConfigSuffix = ".vis.config";
constexpr size_t kMaxKept = 64, kMaxConfigs = 500;

// "/a/run" of "/a/run.vis.db"
std::string_view Stem(std::string_view real) {
  if (EndsWith(real, kDbSuffix)) real.remove_suffix(kDbSuffix.size());
  return real;
}

std::string EditsPath(std::string_view real) { return std::string(Stem(real)) + std::string(kEditsSuffix); }

// Links are not followed: what stands beside the database may come from somebody else.
StatusOr<std::string> ReadSmallFile(const std::string& path) {
  const std::string_view shown = BaseName(path);
  const int fd = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return BadInput(fmt::format("{} cannot be read ({}): check it", shown, std::strerror(errno)));
  struct stat st {};
  Status status;
  std::string text;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    status = BadInput(fmt::format("{} is not a regular file: remove it", shown));
  } else if (static_cast<uint64_t>(st.st_size) > kMaxMatchFileBytes) {
    status = BadInput(fmt::format("{} is larger than 32 MiB: it is not a list of matches", shown));
  } else {
    text.resize(static_cast<size_t>(st.st_size));
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t got = read(fd, text.data() + done, text.size() - done);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      done += static_cast<size_t>(got);
    }
    text.resize(done);
  }
  close(fd);
  if (!status.ok()) return status;
  return text;
}

Status WriteSmallFile(const std::string& path, std::string_view text) {
  const auto explain = [&](const Status& status) {
    return status.ok() ? status
                       : InternalError(fmt::format("the matches could not be saved ({}): make the directory of the "
                                                   "graph file writable, or copy the file to one that is",
                                                   status.message().substr(0, status.message().find(": choose"))));
  };
  auto file = OutputFile::Create(path);
  if (!file.ok()) return explain(file.status());
  if (Status written = file->Write(text); !written.ok()) return explain(written);
  return explain(file->Commit());
}

std::string RevisionOf(const FileStamp& s) {
  return fmt::format("{}-{}-{}-{}", s.inode, s.size, s.mtime_s, s.mtime_ns);
}

MatchStore::Loaded ReadEdits(const std::string& path, const FileStamp& stamp) {
  MatchStore::Loaded loaded{std::make_shared<const FileEdits>(), RevisionOf(stamp), ""};
  auto text = ReadSmallFile(path);
  auto edits = text.ok() ? ParseFileEdits(*text, BaseName(path)) : StatusOr<FileEdits>(text.status());
  if (edits.ok()) {
    loaded.edits = std::make_shared<const FileEdits>(*std::move(edits));
  } else {
    loaded.problem = edits.status().message();
  }
  return loaded;
}

}  // namespace

MatchStore::Loaded MatchStore::Load(const std::string& real) {
  static const auto kNone = std::make_shared<const FileEdits>();
  const std::string path = EditsPath(real);
  FileStamp stamp;
  if (!ReadStamp(path, &stamp)) return {kNone, "0", ""};
  std::lock_guard lock(mutex_);
  const auto known = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) { return k.real == real; });
  if (known != kept_.end() && known->stamp == stamp) {
    kept_.splice(kept_.begin(), kept_, known);
    return known->loaded;
  }
  if (known != kept_.end()) kept_.erase(known);
  kept_.push_front({real, stamp, ReadEdits(path, stamp)});
  if (kept_.size() > kMaxKept) kept_.pop_back();
  return kept_.front().loaded;
}

Status MatchStore::Change(const std::string& real,
                          const std::function<StatusOr<bool>(const std::string& revision, FileEdits* edits)>& change) {
  std::lock_guard one_at_a_time(changing_);
  const Loaded now = Load(real);
  if (!now.problem.empty()) return BadInput(now.problem);
  FileEdits edits = *now.edits;
  MSP_ASSIGN_OR_RETURN(const bool changed, change(now.revision, &edits));
  if (!changed) return OkStatus();
  std::erase_if(edits, [](const auto& graph) { return graph.second.empty(); });
  const std::string json = FileEditsJson(edits);
  if (json.size() > kMaxMatchFileBytes)
    return UsageError("these are more matches than a file holds: match fewer nodes");
  return WriteSmallFile(EditsPath(real), json);
}

std::vector<std::string> ListMatchConfigs(const std::string& real) {
  std::vector<std::string> names;
  auto all = ListDirectory(std::string(DirName(real)));
  if (!all.ok()) return names;
  for (std::string& name : *all) {
    if (!EndsWith(name, kConfigSuffix) || name[0] == '.' || !IsUtf8(name)) continue;
    if (names.size() >= kMaxConfigs) break;
    names.push_back(std::move(name));
  }
  return names;
}

StatusOr<std::string> ReadMatchConfig(const std::string& real, std::string_view name) {
  if (!EndsWith(name, kConfigSuffix) || name[0] == '.' || name.size() > 255 ||
      name.find('/') != std::string_view::npos || name.find('\0') != std::string_view::npos) {
    return UsageError("config is not the name of a .vis.config file beside the graph file: choose from the list");
  }
  return ReadSmallFile(JoinPath(DirName(real), name));
}

StatusOr<std::string> WriteMatchConfig(const std::string& real, int64_t step, int64_t rank, const MatchEdits& edits) {
  const std::string path = fmt::format("{}_{}_{}{}", Stem(real), step, rank, kConfigSuffix);
  MSP_RETURN_IF_ERROR(WriteSmallFile(path, MatchConfigJson(edits)));
  return std::string(BaseName(path));
}

}  // namespace msprobe::view
