// Where the tensors of a step go: one file each in dump_tensor_data/, written by a thread of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "tensor/kernels/content_hash.h"
#include "tensor/kernels/stats.h"

namespace msprobe {

/// Elements taken out of the framework's memory, in C order.
struct TensorCopy {
  DType dtype = DType::kUnknown;
  std::vector<int64_t> shape;
  std::unique_ptr<char[]> data;
  size_t capacity = 0, bytes = 0;

  TensorView view() const { return {data.get(), dtype, static_cast<int>(shape.size()), shape.data(), nullptr}; }
};

/// Null without memory.
std::shared_ptr<TensorCopy> CopyTensor(const TensorView& tensor);

struct TensorFileCounts {
  uint64_t saved = 0;    // names in the directory
  uint64_t linked = 0;   // of these without bytes of their own
  uint64_t bytes = 0;    // on disk
  uint64_t dropped = 0;  // asked for and not there
};

/// A name as a file name: what a file system cannot take is replaced, and a long one shortened with a checksum.
std::string TensorFileName(std::string_view name, std::string_view extension);

/// Calls may come from any thread. A tensor whose content is in the directory already becomes a hard link. After an
/// error (disk full, ...) nothing more is written in this step: Save() answers false, status() tells why.
class TensorFiles {
 public:
  struct Options {
    size_t queue_bytes = size_t{256} << 20;  // copies that wait; beyond it the recording thread writes itself
    size_t known_contents = size_t{1} << 16;
  };
  TensorFiles() = default;
  explicit TensorFiles(Options options) : options_(options) {}
  TensorFiles(const TensorFiles&) = delete;
  TensorFiles& operator=(const TensorFiles&) = delete;
  ~TensorFiles();

  /// Makes the directory. What was written before is finished first.
  Status Open(const std::string& dir);
  bool is_open() const { return open_; }
  const std::string& dir() const { return dir_; }

  /// Whether Save() has a chance.
  bool working() const { return open_ && !failed_ && !limited_; }
  /// Elements are taken before it returns. `file` comes from TensorFileName(). False: it will not be there.
  bool Save(const std::string& file, const TensorView& tensor);
  /// A file that somebody else wrote into the directory, or failed to.
  void Count(uint64_t bytes, bool saved);
  /// Turns saving off for this step, as an error does.
  void Stop(const Status& why);
  /// The files of this step have at most so many bytes: the first one beyond is not written, and none after it.
  void Limit(uint64_t bytes, const std::string& reason);
  bool limited() const { return limited_; }

  /// Everything asked for so far is in place. The first error of the step.
  Status Finish();
  /// Finish, and forget the directory.
  Status Close();
  Status status() const;
  /// What has not been told yet: an error comes once.
  Status TakeStatus();
  TensorFileCounts counts() const;
  /// The counts of the step that was closed, once: a step that saves no tensors has none.
  TensorFileCounts TakeCounts();

 private:
  struct Content {
    ContentHash hash;
    DType dtype;
    std::vector<int64_t> shape;
    bool operator==(const Content&) const = default;
  };
  struct ContentKey {
    size_t operator()(const Content& c) const { return c.hash.low; }
  };
  struct Job {
    std::string file;
    std::string source;  // not empty: a link to it
    std::unique_ptr<TensorCopy> copy;
  };
  std::unique_ptr<TensorCopy> TakeCopy(const TensorView& tensor, size_t bytes);
  void Recycle(std::unique_ptr<TensorCopy> copy);
  bool TakeOfLimit(uint64_t bytes);
  void Remember(Content content, const std::string& file) noexcept;
  bool Forget(const std::string& file);
  void Enqueue(Job job);
  bool SaveHere(Content content, const std::string& file, const TensorView& tensor, bool again);
  void Run(const Job& job);
  void WithMemory(const std::function<void()>& work) noexcept;
  Status Link(const std::string& source, const std::string& file, uint64_t* bytes);
  void Note(const Status& status, uint64_t bytes, bool linked);
  void Loop();

  Options options_;
  std::string dir_;
  std::atomic<bool> open_{false}, failed_{false}, limited_{false};

  mutable std::mutex mutex_;
  std::condition_variable changed_, idle_;
  std::deque<Job> queue_;
  std::unordered_multiset<std::string> queued_names_;
  size_t queued_bytes_ = 0, free_bytes_ = 0;
  std::multimap<size_t, std::unique_ptr<char[]>> free_;  // by capacity
  bool busy_ = false, quit_ = false;
  std::thread thread_;
  std::unordered_map<Content, std::string, ContentKey> known_;
  std::unordered_map<std::string, Content> sources_;  // known_ the other way round
  std::deque<Content> known_order_;
  TensorFileCounts counts_;
  Status error_;
  bool told_ = false;
  uint64_t limit_ = UINT64_MAX, planned_ = 0;  // bytes of the step, those included that wait
  std::string limit_reason_;
};

}  // namespace msprobe
