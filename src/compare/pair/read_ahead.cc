#include "compare/pair/read_ahead.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "base/parallel.h"

namespace msprobe {
namespace {

constexpr uint64_t kMostAhead = 128 << 20;
// Asking blocks while the disk's queue is full or a directory is read; more than one keeps a fast disk busy.
constexpr size_t kThreads = 4;
// While files are found in memory, only each of so many is looked at.
constexpr size_t kSample = 16;

bool IsInMemory(int fd, off_t size) {
#ifdef RWF_NOWAIT
  char byte;
  const iovec one{&byte, 1};
  return size == 0 || preadv2(fd, &one, 1, size / 2, RWF_NOWAIT) >= 0 || errno != EAGAIN;
#else
  return size == 0 || fd < 0;
#endif
}

}  // namespace

/// What the thread keeps from op to op.
struct ReadAhead::Reader {
  JsonDoc doc;
  std::vector<Item> scratch;
  std::vector<ItemView> items;
  size_t in_memory = 0, looked_at = 0;

  /// Asks for the files of one op; how many bytes they are.
  uint64_t Ask(const DumpFile& dump, size_t op, const TensorFolder& folder) {
    if (!dump.ParseOp(op, &doc).ok()) return 0;
    size_t count = 0;
    DescribeOp(dump.ops().NameAt(op), doc, CompareMode::kTensor, &scratch, &items, &count);
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!items[i].HasData()) continue;
      if (in_memory >= kSample && looked_at++ % kSample != 0) continue;
      if (const auto path = folder.Find(items[i].data_name); path.ok()) bytes += AskForFile(*path);
    }
    return bytes;
  }

  uint64_t AskForFile(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return 0;
    struct stat info {};
    uint64_t bytes = 0;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
      const bool here = IsInMemory(fd, info.st_size);
      in_memory = here ? in_memory + 1 : 0;
      if (!here && posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED) == 0) bytes = static_cast<uint64_t>(info.st_size);
    }
    close(fd);
    return bytes;
  }
};

ReadAhead::ReadAhead(const DumpPair& pair) : pair_(pair) {
  if (!pair.tensors) return;
  asked_for_.assign(pair.target->ops().size(), 0);
  // Without a thread to spare, files are read when they are needed.
  threads_ = StartThreads(kThreads, [this] {
    try {
      Run();
    } catch (const std::bad_alloc&) {
      // The comparison itself will say so.
    }
  });
}

ReadAhead::~ReadAhead() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ReadAhead::Passed(size_t op) {
  if (asked_for_.empty()) return;
  std::lock_guard lock(mutex_);
  for (; passed_ < op; ++passed_) ahead_ -= asked_for_[passed_];
  room_.notify_all();
}

bool ReadAhead::WaitForRoom(size_t op) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return stop_ || ahead_ < kMostAhead || op < passed_; });
  return !stop_;
}

void ReadAhead::Note(size_t op, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (op < passed_) return;
  asked_for_[op] = bytes;
  ahead_ += bytes;
}

void ReadAhead::Run() {
  Reader reader;
  for (size_t op = next_++; op < asked_for_.size(); op = next_++) {
    if (!WaitForRoom(op)) return;
    uint64_t bytes = reader.Ask(*pair_.target, op, pair_.tensors->target());
    const uint32_t partner = pair_.plan.golden_of[op];
    if (partner != kNoOp) bytes += reader.Ask(*pair_.golden, partner, pair_.tensors->golden());
    Note(op, bytes);
  }
}

}  // namespace msprobe
