#include "dump/writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/file.h"
#include "base/file_limit.h"
#include "base/message.h"

namespace msprobe {
namespace {

// Pending entries are written without waiting for Flush() from this size on.
constexpr size_t kMostPending = size_t{4} << 20;
// On a full disk pending entries are kept for another try up to this size, then dropped.
constexpr size_t kMostKept = size_t{32} << 20;

}  // namespace

StatusOr<std::unique_ptr<GrowingJsonFile>> GrowingJsonFile::Create(const std::string& path, std::string head,
                                                                   std::string tail) {
  std::unique_ptr<GrowingJsonFile> file(new GrowingJsonFile);
  file->path_ = path;
  file->SetTail(std::move(tail));
  TempPath temp(path);
  file->fd_ = open(temp.path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode);
  if (file->fd_ < 0) {
    return BadInput(Msg("{} cannot be written ({}): choose another dump_path", path, KnownText(std::strerror(errno))));
  }
  file->tail_changed_ = false;
  file->offset_ = head.size();
  MSP_RETURN_IF_ERROR(file->WriteAt(head.append(file->empty_tail_), 0));
  MSP_RETURN_IF_ERROR(temp.Commit());
  return file;
}

void GrowingJsonFile::SetTail(std::string tail) {
  tail_ = std::move(tail);
  // An object without entries closes on the line of its opening brace.
  const size_t brace = tail_.find_first_not_of(" \n");
  empty_tail_ = brace == std::string::npos ? std::string() : tail_.substr(brace);
  tail_changed_ = true;
}

GrowingJsonFile::~GrowingJsonFile() {
  try {
    (void)Close();
  } catch (const std::bad_alloc&) {  // for the text of an error
  }
}

Status GrowingJsonFile::Append(std::string_view entries, uint64_t count) {
  if (entries.empty()) return OkStatus();
  pending_.reserve(pending_.size() + 1 + entries.size() + tail_.size());  // now or never: no comma without its entry
  if (any_ || !pending_.empty()) pending_.push_back(',');
  pending_.append(entries);
  pending_entries_ += count;
  return pending_.size() >= kMostPending ? Flush() : OkStatus();
}

Status GrowingJsonFile::Flush() {
  if (pending_.empty()) {
    if (tail_changed_ && fd_ >= 0) PutTailBack();
    tail_changed_ = false;
    return OkStatus();
  }
  if (fd_ < 0) return InternalError(Msg("{} is closed: open a new file for more entries", path_));
  const size_t size = pending_.size();
  pending_.append(tail_);
  const Status status = WriteAt(pending_, offset_);
  pending_.resize(size);
  if (struct stat st{}; fstat(fd_, &st) == 0 && st.st_nlink == 0) {
    pending_.clear();
    entries_ = pending_entries_ = 0;
    return InternalError(Msg("{} was deleted while it was written: what this step recorded is lost", path_));
  }
  if (status.ok()) {
    offset_ += size;
    any_ = true;
    tail_changed_ = false;
    pending_.clear();
    entries_ += std::exchange(pending_entries_, 0);
    return status;
  }
  PutTailBack();
  if (size <= kMostKept) return status;
  pending_.clear();
  pending_entries_ = 0;
  return InternalError(Msg("{}; {} bytes of entries were dropped", status.text(), size));
}

// The new entries overwrote the closing braces before the disk refused the rest. The blocks at their place are
// allocated, so they can be written also when the disk is full.
void GrowingJsonFile::PutTailBack() {
  const std::string& tail = any_ ? tail_ : empty_tail_;
  if (WriteAt(tail, offset_).ok()) (void)!ftruncate(fd_, static_cast<off_t>(offset_ + tail.size()));
}

Status GrowingJsonFile::Close() {
  if (fd_ < 0) return OkStatus();
  const Status status = Flush();
  const int fd = fd_;
  fd_ = -1;
  if (close(fd) != 0 && status.ok()) {
    return InternalError(Msg("{} could not be written ({}): free some space", path_, KnownText(std::strerror(errno))));
  }
  return status;
}

Status GrowingJsonFile::WriteAt(std::string_view text, uint64_t offset) {
  const FileLimitGuard guard;
  while (!text.empty()) {
    const ssize_t n = pwrite(fd_, text.data(), text.size(), static_cast<off_t>(offset));
    if (n < 0) {
      if (errno == EINTR) continue;
      return InternalError(Msg("{} could not be written ({}): free some space or choose another dump_path", path_,
                               KnownText(std::strerror(errno))));
    }
    text.remove_prefix(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return OkStatus();
}

}  // namespace msprobe
