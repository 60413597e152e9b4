#include "base/big_array.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <mutex>

#include "base/file_limit.h"
#include "base/page_trim.h"

namespace msprobe {
namespace {

constexpr size_t kHeapBytes = size_t{1} << 20;     // smaller arrays are the heap's
constexpr size_t kRound = size_t{64} << 10;        // of what is mapped
constexpr size_t kMostMemory = size_t{176} << 20;  // of all arrays together

std::atomic<size_t> g_most_memory{kMostMemory};
std::atomic<size_t> g_memory{0}, g_files{0};

std::mutex g_directory_mutex;
std::string& SpillDirectory() {
  static std::string* const directory = new std::string;
  return *directory;
}

/// True when there is room for so many bytes more; they are counted then.
bool TakeMemory(size_t bytes) {
  size_t now = g_memory.load();
  do {
    if (now + bytes > g_most_memory.load()) return false;
  } while (!g_memory.compare_exchange_weak(now, now + bytes));
  return true;
}

int OpenIn(const std::string& directory) {
#ifdef O_TMPFILE
  const int fd = open(directory.c_str(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0 || errno == ENOENT || errno == EACCES) return fd;
#endif
  std::string name = directory + "/.msprobe_XXXXXX";
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) unlink(name.c_str());
  return named;
}

/// A file without a name; -1 where none can be made.
int OpenSpill() {
  std::string directory;
  {
    std::lock_guard lock(g_directory_mutex);
    directory = SpillDirectory();
  }
  const int fd = directory.empty() ? -1 : OpenIn(directory);
  if (fd >= 0) return fd;
  const char* const system = std::getenv("TMPDIR");
  return OpenIn(system && *system ? system : "/tmp");
}

/// Blocks on the disk, so that a full one is found out now and not by a signal later.
bool Allocate(int fd, size_t from, size_t to) {
  const FileLimitGuard guard;
  return posix_fallocate(fd, static_cast<off_t>(from), static_cast<off_t>(to - from)) == 0;
}

bool WriteAll(int fd, const char* data, size_t size) {
  const FileLimitGuard guard;
  for (size_t done = 0; done < size;) {
    const ssize_t n = pwrite(fd, data + done, size - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

char* Mapped(void* p) { return p == MAP_FAILED ? nullptr : static_cast<char*>(p); }

char* MapMemory(size_t bytes) {
  return Mapped(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

}  // namespace

void SetSpillDirectory(const std::string& path) {
  std::lock_guard lock(g_directory_mutex);
  SpillDirectory() = path;
}

size_t SetBigArrayMemory(size_t bytes) { return g_most_memory.exchange(bytes); }

BigArrayUse UseOfBigArrays() { return {g_memory.load(), g_files.load()}; }

BigBlock::~BigBlock() { Free(); }

void BigBlock::Free() {
  switch (kind_) {
    case Kind::kHeap: std::free(data_); break;
    case Kind::kMemory:
      munmap(data_, capacity_);
      g_memory -= capacity_;
      break;
    case Kind::kFile:
      UnwatchMap(data_);
      munmap(data_, capacity_);
      close(fd_);
      g_files -= capacity_;
      break;
  }
  data_ = nullptr;
  capacity_ = 0;
  fd_ = -1;
  kind_ = Kind::kHeap;
}

void BigBlock::Reserve(size_t bytes, size_t used) {
  if (bytes <= capacity_) return;
  if (bytes > SIZE_MAX / 4) throw std::bad_alloc();
  constexpr size_t kLeast = 64;
  bytes = std::max({bytes, capacity_ + capacity_ / 2, kLeast});
  if (bytes < kHeapBytes) return GrowHeap(bytes);
  bytes = (bytes + kRound - 1) / kRound * kRound;
  if (kind_ == Kind::kFile ? GrowFile(bytes) : GrowMemory(bytes, used) || MoveToFile(bytes, used)) return;
  MoveToMemory(bytes, used);  // no disk: memory must do
}

void BigBlock::GrowHeap(size_t bytes) {
  void* const grown = std::realloc(data_, bytes);
  if (!grown) throw std::bad_alloc();
  data_ = static_cast<char*>(grown);
  capacity_ = bytes;
}

bool BigBlock::GrowMemory(size_t bytes, size_t used) {
  const size_t before = kind_ == Kind::kMemory ? capacity_ : 0;
  if (!TakeMemory(bytes - before)) return false;
  char* const grown =
      kind_ == Kind::kMemory ? Mapped(mremap(data_, capacity_, bytes, MREMAP_MAYMOVE)) : MapMemory(bytes);
  if (!grown) {
    g_memory -= bytes - before;
    return false;
  }
  if (kind_ == Kind::kHeap) {
    if (used > 0) std::memcpy(grown, data_, used);
    std::free(data_);
  }
  data_ = grown;
  capacity_ = bytes;
  kind_ = Kind::kMemory;
  return true;
}

bool BigBlock::GrowFile(size_t bytes) {
  if (!Allocate(fd_, capacity_, bytes)) return false;
  UnwatchMap(data_);
  char* const grown = Mapped(mremap(data_, capacity_, bytes, MREMAP_MAYMOVE));
  if (!grown) {
    WatchMap(data_, capacity_);
    return false;
  }
  g_files += bytes - capacity_;
  data_ = grown;
  capacity_ = bytes;
  WatchMap(data_, capacity_);
  return true;
}

bool BigBlock::MoveToFile(size_t bytes, size_t used) {
  const int fd = OpenSpill();
  if (fd < 0) return false;
  char* grown = nullptr;
  if (Allocate(fd, 0, bytes) && WriteAll(fd, data_, used)) {
    grown = Mapped(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  }
  if (!grown) {
    close(fd);
    return false;
  }
  Free();
  data_ = grown;
  capacity_ = bytes;
  fd_ = fd;
  kind_ = Kind::kFile;
  g_files += bytes;
  WatchMap(data_, capacity_);
  return true;
}

void BigBlock::MoveToMemory(size_t bytes, size_t used) {
  char* const grown = MapMemory(bytes);
  if (!grown) throw std::bad_alloc();
  if (used > 0) std::memcpy(grown, data_, used);
  Free();
  g_memory += bytes;
  data_ = grown;
  capacity_ = bytes;
  kind_ = Kind::kMemory;
}

}  // namespace msprobe
