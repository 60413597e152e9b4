#include "graph/db/page_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/file_limit.h"
#include "base/message.h"
#include "base/parallel.h"
#include "graph/db/sqlite_format.h"

namespace msprobe {
namespace {

constexpr size_t kChunkBytes = 64 * kSqlPageBytes;
constexpr size_t kMostWaiting = 4;  // chunks
constexpr uint64_t kWriteAhead = uint64_t{8} << 20;
// SQLite keeps the page of this byte free: it is where it locks files.
constexpr uint64_t kLockByte = uint64_t{1} << 30;
constexpr uint32_t kLockPage = static_cast<uint32_t>(kLockByte / kSqlPageBytes) + 1;

}  // namespace

StatusOr<std::unique_ptr<PageFile>> PageFile::Open(const std::string& path, const std::string& shown, uint32_t pages) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return InternalError(
        Msg("{} could not be written ({}): choose another directory with -o", shown, KnownText(std::strerror(errno))));
  }
  return std::unique_ptr<PageFile>(new PageFile(fd, shown, pages));
}

PageFile::PageFile(int fd, std::string shown, uint32_t pages)
    : fd_(fd),
      shown_(std::move(shown)),
      pages_(pages),
      offset_(uint64_t{pages} * kSqlPageBytes),
      chunk_{std::unique_ptr<char[]>(new char[kChunkBytes])} {
  thread_ = StartThreads(1, [this] { Work(); });
}

PageFile::~PageFile() {
  Stop();
  close(fd_);
}

void PageFile::Stop() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  filled_.notify_all();
  for (std::thread& thread : thread_) thread.join();
  thread_.clear();
}

uint32_t PageFile::next() const { return pages_ + 1 == kLockPage ? pages_ + 2 : pages_ + 1; }

char* PageFile::Room() {
  if (chunk_.used == kChunkBytes) HandOver();
  char* const room = chunk_.bytes.get() + chunk_.used;
  chunk_.used += kSqlPageBytes;
  ++pages_;
  return room;
}

char* PageFile::Add(uint32_t* number) {
  if (pages_ + 1 == kLockPage) std::memset(Room(), 0, kSqlPageBytes);
  char* const room = Room();
  *number = pages_;
  return room;
}

void PageFile::HandOver() {
  if (thread_.empty()) {  // the machine gives none
    WriteAt(offset_, chunk_.bytes.get(), chunk_.used);
    offset_ += chunk_.used;
    chunk_.used = 0;
    return;
  }
  Chunk next;
  {
    std::unique_lock lock(mutex_);
    taken_.wait(lock, [&] { return waiting_.size() < kMostWaiting; });
    waiting_.push_back(std::move(chunk_));
    if (!free_.empty()) {
      next = std::move(free_.back());
      free_.pop_back();
    }
  }
  filled_.notify_one();
  chunk_ = std::move(next);
  chunk_.used = 0;
  if (!chunk_.bytes) chunk_.bytes.reset(new char[kChunkBytes]);
}

void PageFile::Work() {
  uint64_t synced = offset_;
  std::unique_lock lock(mutex_);
  for (;;) {
    filled_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Chunk chunk = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    WriteAt(offset_, chunk.bytes.get(), chunk.used);
    offset_ += chunk.used;
#ifdef SYNC_FILE_RANGE_WRITE
    // Results are on disk before they have their name: the disk starts now, and the wait at the end is short.
    if (offset_ - synced >= kWriteAhead) {
      (void)sync_file_range(fd_, static_cast<off64_t>(synced), static_cast<off64_t>(offset_ - synced),
                            SYNC_FILE_RANGE_WRITE);
      synced = offset_;
    }
#endif
    lock.lock();
    try {
      free_.push_back(std::move(chunk));
    } catch (const std::bad_alloc&) {  // HandOver() makes a new one
    }
    taken_.notify_all();
  }
}

/// After an error nothing more is written: the file will not be kept.
void PageFile::WriteAt(uint64_t offset, const char* bytes, size_t size) {
  const FileLimitGuard guard;
  for (size_t done = 0; done < size && error_ == 0;) {
    const ssize_t k = pwrite(fd_, bytes + done, size - done, static_cast<off_t>(offset + done));
    if (k >= 0) {
      done += static_cast<size_t>(k);
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
}

void PageFile::Replace(uint32_t number, const char* page) {
  WriteAt(uint64_t{number - 1} * kSqlPageBytes, page, kSqlPageBytes);
}

Status PageFile::Check() const {
  const int error = error_;
  if (error == 0) return OkStatus();
  return InternalError(Msg("{} could not be written ({}): free some space or choose another directory with -o", shown_,
                           KnownText(std::strerror(error))));
}

/// The number of pages counts for SQLite when the head says at which change it was written.
void PageFile::WriteHead() {
  std::array<char, kSqlFileHead> head{};
  if (pread(fd_, head.data(), kSqlFileHead, 0) != static_cast<ssize_t>(kSqlFileHead)) {
    error_ = errno != 0 ? errno : EIO;
    return;
  }
  PutSqlBig(head.data() + kSqlHeadPages, pages_, 4);
  std::memcpy(head.data() + kSqlHeadValidFor, head.data() + kSqlHeadChange, 4);
  WriteAt(0, head.data(), kSqlFileHead);
}

Status PageFile::Finish() {
  if (chunk_.used > 0) HandOver();
  Stop();
  WriteHead();
  return Check();
}

}  // namespace msprobe
