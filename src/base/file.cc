#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <new>

#include "base/file_limit.h"
#include "base/message.h"
#include "base/page_trim.h"
#include "base/temp_names.h"

namespace msprobe {
namespace {

Message Reason() { return KnownText(std::strerror(errno)); }

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr uint64_t kWriteAhead = 16 << 20;

Status NotInPlace(const std::string& path) {
  return InternalError(Msg("{} could not be put in place ({}): choose another directory with -o", path, Reason()));
}

/// "out/x.vis.db", 2 -> "out/x_2.vis.db"
std::string NumberedName(const std::string& path, int number) {
  constexpr std::string_view kGraph = ".vis.db";
  const std::string_view name = BaseName(path);
  const size_t dot = name.rfind('.');
  const size_t tail = name.ends_with(kGraph) ? kGraph.size() : dot == std::string_view::npos ? 0 : name.size() - dot;
  const size_t at = path.size() - tail;
  return path.substr(0, at) + "_" + std::to_string(number) + path.substr(at);
}

/// Gives the file at `temp` the name *path, or a numbered one beside it when that is taken: results carry a time stamp
/// of seconds, and commands that run side by side must not overwrite each other's.
Status RenameToFreeName(const std::string& temp, std::string* path) {
  constexpr int kMostTries = 10000;
  const std::string wanted = *path;
  for (int number = 1; number <= kMostTries; ++number) {
    if (number > 1) *path = NumberedName(wanted, number);
    if (renameat2(AT_FDCWD, temp.c_str(), AT_FDCWD, path->c_str(), RENAME_NOREPLACE) == 0) return OkStatus();
    if (errno == EEXIST) continue;
    if (errno != EINVAL && errno != ENOSYS) return NotInPlace(*path);
    // Not every file system knows how not to replace.
    if (PathExists(*path)) continue;
    return rename(temp.c_str(), path->c_str()) == 0 ? OkStatus() : NotInPlace(*path);
  }
  return InternalError(Msg("{} and its numbered names are taken: choose another directory with -o", wanted));
}

constexpr size_t kCopiedBytes = size_t{64} << 10;
constexpr std::align_val_t kCopyAlignment{64};

/// All of a small file; fewer bytes when it became shorter just now. Null when it cannot be read.
char* CopyFile(int fd, size_t* size) {
  char* const data = static_cast<char*>(::operator new(*size, kCopyAlignment));
  size_t done = 0;
  while (done < *size) {
    const ssize_t got = pread(fd, data + done, *size - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      ::operator delete(data, kCopyAlignment);
      return nullptr;
    }
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  *size = done;
  return data;
}

void UnmapFile(const char* data, size_t size, bool copied) {
  if (!data) return;
  if (copied) return ::operator delete(const_cast<char*>(data), kCopyAlignment);
  if (size >= kTrimmedMapBytes) UnwatchMap(data);
  munmap(const_cast<char*>(data), size);
}
}  // namespace

StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  MappedFile file;
  file.path_ = path;
  if (path.empty()) return BadInput(Msg("the path of an input is empty: give a file"));
  // Without O_NONBLOCK a pipe in place of a file would be waited for.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    if (errno == ENOENT) return Missing(path, "check the path");
    return BadInput(Msg("{} cannot be read ({}): check the path and its permissions", path, Reason()));
  }
  struct stat st {};
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    close(fd);
    return BadInput(Msg("{} is not a regular file: give the path of a file", path));
  }
  file.size_ = static_cast<size_t>(st.st_size);
  if (file.size_ > 0 && file.size_ <= kCopiedBytes) {
    file.data_ = CopyFile(fd, &file.size_);
    file.copied_ = true;
    if (!file.data_) {
      const Message why = Reason();
      close(fd);
      return BadInput(Msg("{} cannot be read ({}): check the file and its permissions", path, why));
    }
  } else if (file.size_ > 0) {
    void* p = mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) {
      const Message why = Reason();
      close(fd);
      return InternalError(Msg("{} cannot be mapped ({})", path, why));
    }
    file.data_ = static_cast<const char*>(p);
    if (file.size_ >= kTrimmedMapBytes) WatchMap(file.data_, file.size_);
  }
  close(fd);
  return file;
}

MappedFile::MappedFile(MappedFile&& o) noexcept
    : data_(std::exchange(o.data_, nullptr)),
      size_(std::exchange(o.size_, 0)),
      copied_(o.copied_),
      path_(std::move(o.path_)) {}

MappedFile& MappedFile::operator=(MappedFile&& o) noexcept {
  if (this != &o) {
    UnmapFile(data_, size_, copied_);
    data_ = std::exchange(o.data_, nullptr);
    size_ = std::exchange(o.size_, 0);
    copied_ = o.copied_;
    path_ = std::move(o.path_);
  }
  return *this;
}

MappedFile::~MappedFile() { UnmapFile(data_, size_, copied_); }

void MappedFile::Release(size_t begin, size_t end) const {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  begin = (begin + page - 1) / page * page;
  end = std::min(end, size_) / page * page;
  if (data_ && !copied_ && end > begin) (void)madvise(const_cast<char*>(data_) + begin, end - begin, MADV_DONTNEED);
}

void MappedFile::WillNeed(size_t begin, size_t end) const {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  begin = begin / page * page;
  end = std::min(end, size_);
  if (data_ && end > begin) (void)madvise(const_cast<char*>(data_) + begin, end - begin, MADV_WILLNEED);
}

StatusOr<OutputFile> OutputFile::Create(const std::string& path) {
  OutputFile file;
  file.path_ = path;
  file.temp_ = TempName(path);
  RememberTemp(file.temp_);  // before it exists: a signal may come in between
  file.fd_ = open(file.temp_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode);
  if (file.fd_ < 0) {
    return BadInput(Msg("{} cannot be written ({}): choose another output directory", path, Reason()));
  }
  (void)fchmod(file.fd_, kFileMode);
  file.buffer_.reserve(kBufferBytes);
  return file;
}

OutputFile::OutputFile(OutputFile&& o) noexcept
    : fd_(std::exchange(o.fd_, -1)),
      path_(std::move(o.path_)),
      temp_(std::exchange(o.temp_, {})),
      buffer_(std::move(o.buffer_)),
      written_(o.written_) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) close(fd_);
  if (temp_.empty()) return;
  unlink(temp_.c_str());
  ForgetTemp(temp_);
}

Status OutputFile::Flush() {
  const FileLimitGuard guard;
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t k = write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (k < 0) {
      if (errno == EINTR) continue;
      return InternalError(
          Msg("{} could not be written ({}): free some space or choose another directory with -o", path_, Reason()));
    }
    done += static_cast<size_t>(k);
  }
  written_ += done;
  buffer_.clear();
#ifdef SYNC_FILE_RANGE_WRITE
  // Results are on disk before they have their name: the disk starts now, and the wait at the end is short.
  const uint64_t from = (written_ - done) / kWriteAhead * kWriteAhead, to = written_ / kWriteAhead * kWriteAhead;
  if (to > from)
    (void)sync_file_range(fd_, static_cast<off64_t>(from), static_cast<off64_t>(to - from), SYNC_FILE_RANGE_WRITE);
#endif
  return OkStatus();
}

Status OutputFile::Write(std::string_view bytes) {
  buffer_.append(bytes);
  return buffer_.size() >= kBufferBytes ? Flush() : OkStatus();
}

Status OutputFile::Rest() {
  MSP_RETURN_IF_ERROR(Flush());
  std::string().swap(buffer_);
  return OkStatus();
}

Status OutputFile::Close(bool sync) {
  MSP_RETURN_IF_ERROR(Flush());
  // A disk that fills up late, or a file server, may tell only now.
  const bool synced = !sync || fdatasync(fd_) == 0 || errno == EINVAL;
  const Message why = Reason();
  const int fd = std::exchange(fd_, -1);
  if (close(fd) != 0) return InternalError(Msg("{} could not be written ({})", path_, Reason()));
  if (synced) return OkStatus();
  return InternalError(
      Msg("{} could not be written ({}): free some space or choose another directory with -o", path_, why));
}

Status OutputFile::Commit() {
  MSP_RETURN_IF_ERROR(Close(/*sync=*/false));
  if (rename(temp_.c_str(), path_.c_str()) != 0) return NotInPlace(path_);
  ForgetTemp(temp_);
  temp_.clear();
  return OkStatus();
}

Status OutputFile::CommitResult(const std::string& path) {
  MSP_RETURN_IF_ERROR(Close(/*sync=*/true));
  if (!path.empty()) path_ = path;
  MSP_RETURN_IF_ERROR(RenameToFreeName(temp_, &path_));
  ForgetTemp(temp_);
  temp_.clear();
  return OkStatus();
}

TempPath::TempPath(const std::string& final_path) : final_(final_path), temp_(TempName(final_path)) {
  RememberTemp(temp_);
}

TempPath::~TempPath() {
  ForgetTemp(temp_);
  if (committed_) return;
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) unlink((temp_ + suffix).c_str());
}

Status TempPath::Commit() {
  (void)chmod(temp_.c_str(), kFileMode);
  if (rename(temp_.c_str(), final_.c_str()) != 0) return NotInPlace(final_);
  committed_ = true;
  return OkStatus();
}

Status TempPath::CommitResult() {
  (void)chmod(temp_.c_str(), kFileMode);
  const int fd = open(temp_.c_str(), O_WRONLY | O_CLOEXEC);
  const bool synced = fd >= 0 && (fdatasync(fd) == 0 || errno == EINVAL);
  const Message why = Reason();
  if (fd >= 0) close(fd);
  if (!synced) {
    return InternalError(
        Msg("{} could not be written ({}): free some space or choose another directory with -o", final_, why));
  }
  MSP_RETURN_IF_ERROR(RenameToFreeName(temp_, &final_));
  committed_ = true;
  return OkStatus();
}

Status MakeOutputDir(const std::string& path) {
  if (path.empty()) return BadInput(Msg("the output path is empty: give a directory with -o"));
  if (path.size() > 4096)
    return BadInput(Msg("the output path is longer than 4096 bytes: choose a shorter one with -o"));
  for (size_t i = 1; i <= path.size(); ++i) {
    if (i < path.size() && path[i] != '/') continue;
    const std::string part = path.substr(0, i);
    if (mkdir(part.c_str(), kDirMode) == 0 || errno == EEXIST) {
      if (errno == EEXIST && !IsDirectory(part)) {
        return BadInput(Msg("{} is a file, not a directory: choose another output directory", part));
      }
      continue;
    }
    const Message reason = Reason();
    if (IsDirectory(part)) continue;
    return BadInput(Msg("{} cannot be created ({}): choose another output directory", part, reason));
  }
  if (access(path.c_str(), W_OK | X_OK) != 0) {
    return BadInput(Msg("{} is not writable ({}): choose another output directory", path, Reason()));
  }
  RemoveDeadTemps(path);
  return OkStatus();
}

bool IsDirectory(const std::string& path) {
  struct stat st {};
  return stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}
bool IsRegularFile(const std::string& path) {
  struct stat st {};
  return stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode);
}
bool PathExists(const std::string& path) {
  struct stat st {};
  return stat(path.c_str(), &st) == 0;
}

Status Missing(const std::string& path, std::string_view advice) {
  std::array<char, 4096> to{};
  const ssize_t length = readlink(path.c_str(), to.data(), to.size() - 1);
  if (length <= 0) return BadInput(Msg("{} does not exist: {}", path, KnownText(advice)));
  return BadInput(Msg("{} is a link to {}, which is not there: give a path that is, or put it back", path,
                      std::string(to.data(), static_cast<size_t>(length))));
}

StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) {
  DIR* dir = opendir(path.c_str());
  if (!dir) return BadInput(Msg("{} cannot be listed ({}): check the path", path, Reason()));
  std::vector<std::string> names;
  while (const dirent* entry = readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

std::string JoinPath(std::string_view a, std::string_view b) {
  std::string out(a);
  if (!out.empty() && out.back() != '/') out += '/';
  out += b;
  return out;
}

std::string_view BaseName(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string_view DirName(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? path.substr(0, 1) : path.substr(0, slash);
}

std::string TimestampNow() {
  const std::time_t now = std::time(nullptr);
  std::tm tm{};
  localtime_r(&now, &tm);
  char buf[32];
  const size_t n = std::strftime(buf, sizeof buf, "%Y%m%d%H%M%S", &tm);
  return {buf, n};
}

}  // namespace msprobe
