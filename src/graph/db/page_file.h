// The pages of an SQLite file that are written one behind the other, on a thread of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"

namespace msprobe {

inline constexpr size_t kSqlPageBytes = 16384;

/// Adds pages to a database that nobody else has open. Errors stay: they are told by Check() and Finish().
class PageFile {
 public:
  /// The file at `path` has `pages` pages already. `shown` names it in errors.
  static StatusOr<std::unique_ptr<PageFile>> Open(const std::string& path, const std::string& shown, uint32_t pages);
  PageFile(const PageFile&) = delete;
  PageFile& operator=(const PageFile&) = delete;
  ~PageFile();
  /// Room for one more page, to be filled before the next call; `*number` is its number.
  char* Add(uint32_t* number);
  /// The number that the next page will have.
  uint32_t next() const;
  /// Overwrites a page that was there before.
  void Replace(uint32_t number, const char* page);
  Status Check() const;
  /// Writes what is left, and the number of pages into the head of the file.
  Status Finish();

 private:
  struct Chunk {
    std::unique_ptr<char[]> bytes;
    size_t used = 0;
  };
  PageFile(int fd, std::string shown, uint32_t pages);
  char* Room();
  void HandOver();
  void Work();
  void WriteAt(uint64_t offset, const char* bytes, size_t size);
  void WriteHead();
  void Stop();

  const int fd_;
  const std::string shown_;
  uint32_t pages_;   // in the file, on their way, and in chunk_
  uint64_t offset_;  // where the next chunk goes
  Chunk chunk_;

  std::mutex mutex_;
  std::condition_variable filled_, taken_;
  std::deque<Chunk> waiting_;
  std::vector<Chunk> free_;
  bool stop_ = false;
  std::atomic<int> error_{0};  // the first that was met
  std::vector<std::thread> thread_;
};

}  // namespace msprobe
