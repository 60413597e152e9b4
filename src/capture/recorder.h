// Takes the records of one step and writes dump.json, stack.json and construct.json while the step runs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "capture/construct.h"
#include "capture/record.h"
#include "capture/stack_table.h"
#include "dump/writer.h"

namespace msprobe {

struct StepFiles {
  std::string dir;  // exists
  std::string task, level, framework = "pytorch";
  bool extra_info = true;       // stack.json and construct.json
  std::string tensor_dir = {};  // where tensors are saved; empty: nowhere
};

/// Calls may come from any thread. Formatting and writing happen on a thread of the recorder's own, in the order in
/// which records were committed; memory holds a bounded number of records. After an error (disk full, ...) records are
/// dropped and the error is returned by Flush() and Close().
class Recorder {
 public:
  Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder();

  /// Begins a step, or goes on with the open one. Existing files are replaced.
  Status Open(const StepFiles& files);
  bool is_open() const { return dump_ != nullptr; }

  /// A record to fill; must be given back by Commit() or Discard(), or is taken back by Close().
  Record* Acquire(const OpName& name);
  /// Its place in dump.json is here, though it is not finished.
  void Reserve(Record* record);
  /// It is finished; without a reserved place it stands here.
  void Commit(Record* record);
  void Discard(Record* record);

  /// Everything committed so far is in the files, and the files are complete JSON.
  Status Flush();
  /// Flush, with what is unfinished, and forget the step.
  Status Close();
  /// dump.json and construct.json of the open step have at most so many bytes; then records are dropped with this
  /// reason.
  void Limit(uint64_t bytes, const std::string& reason);
  bool limited() const { return limited_; }
  uint64_t committed() const { return committed_; }

  /// Committed records with has_slots keep their places in the file until their values have come. Offers each of them
  /// to `fill`, which returns true when it filled in all of them. Close() writes the rest without.
  void Resolve(const std::function<bool(Record*)>& fill);

  /// Which records save their tensors.
  void set_save_policy(SavePolicy policy) { save_policy_ = std::move(policy); }
  const SavePolicy& save_policy() const { return save_policy_; }

  /// Both are used under lock(), which is recursive in no way: take it for single calls.
  std::unique_lock<std::mutex> lock() { return std::unique_lock<std::mutex>(mutex_); }
  ConstructTracker& construct() { return construct_; }
  StackTable& stacks() { return stacks_; }

 private:
  struct Batch {
    std::vector<Record*> records;
    std::vector<ParentPair> parents;
    bool flush = false;
  };
  Record* FromPool();
  void Recycle(Record* record);
  void RemoveOpen(Record* record);
  void Finish(Record* record);
  void HandOver(bool flush);
  void WriterLoop();
  Status Write(const Batch& batch);
  Status WriteStacks();
  Status WaitIdle();

  std::mutex mutex_;  // everything up to the queue
  std::deque<Record*> order_;
  std::vector<Record*> open_;
  std::vector<Record*> waiting_;  // committed, in order_, with values that have not come
  ConstructTracker construct_;
  StackTable stacks_;
  size_t next_stack_write_ = 0;
  uint64_t committed_ = 0;
  size_t ready_ = 0;  // done records in order_
  StepFiles files_;
  SavePolicy save_policy_;

  std::mutex queue_mutex_;
  std::condition_variable queue_changed_, idle_;
  std::deque<Batch> queue_;
  size_t queued_records_ = 0;
  bool busy_ = false, quit_ = false;
  Status error_;
  std::thread writer_;

  std::mutex pool_mutex_;
  std::vector<Record*> pool_;

  // The writer thread's, and Open()'s and Close()'s while it is idle.
  std::unique_ptr<GrowingJsonFile> dump_, construct_file_;
  std::atomic<uint64_t> limit_{UINT64_MAX};
  std::atomic<bool> limited_{false};
  uint64_t written_ = 0;
  std::string limit_reason_, text_;
  size_t unflushed_ops_ = 0, unflushed_bytes_ = 0;
};

}  // namespace msprobe
