// Takes the records of one step and writes dump.json, stack.json and construct.json while the step runs.
//
// What is flushed: at least every 1000 ops or MiB of dump.json, about a second after recording pauses, and at Flush()
// and Close(), everything finished so far goes into the files: first stack.json and construct.json, then dump.json,
// then the count in dump_summary.json. So an op that is counted there is in dump.json with its stack and its parent,
// whatever happens to the process, and the files are complete JSON between two flushes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "capture/construct.h"
#include "capture/framework_names.h"
#include "capture/output_gate.h"
#include "capture/record.h"
#include "capture/stack_table.h"
#include "dump/step_summary.h"
#include "dump/writer.h"

namespace msprobe {

struct StepFiles {
  std::string dir;  // exists
  std::string task, level;
  FrameworkNames names = {};
  bool extra_info = true;       // stack.json and construct.json
  std::string tensor_dir = {};  // where tensors are saved; empty: nowhere
  uint64_t ranks = 0;           // that the training has; 0: not known
};

/// Calls may come from any thread. Formatting and writing happen on a thread of the recorder's own (on the caller's,
/// where no thread can be started), in the order in which records were committed; memory holds a bounded number of
/// records: when the disk is slower than the training, the recording thread waits. After an error (disk full, ...) the
/// rest of the step is counted and dropped, and the error is returned by Flush() and Close().
class Recorder {
 public:
  Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder();

  /// Begins a step, or goes on with the open one. Existing files are replaced.
  Status Open(const StepFiles& files);
  bool is_open() const { return dump_ != nullptr; }

  /// A record to fill; must be given back by Commit() or Discard(), or is taken back by Close(). The one call here that
  /// throws: std::bad_alloc.
  Record* Acquire(const OpName& name);
  /// Its place in dump.json is here, though it is not finished. When very many others wait behind it, it loses the
  /// place and stands where it is committed.
  void Reserve(Record* record);
  /// It is finished; without a reserved place it stands here.
  void Commit(Record* record);
  void Discard(Record* record);

  /// Everything committed so far is in the files, and the files are complete JSON.
  Status Flush();
  /// Flush, with what is unfinished, write the summary of the step, and forget it. `skipped` is what could not be
  /// recorded, for the summary.
  Status Close(const std::map<std::string, uint64_t>& skipped = {});
  /// dump.json, construct.json and stack.json of the open step have at most so many bytes together; then records are
  /// dropped with this reason.
  void Limit(uint64_t bytes, const std::string& reason);
  bool limited() const { return limited_; }
  /// Records committed in this step, those included that could not be written.
  uint64_t committed() const { return committed_; }
  /// Of the step that was closed last.
  const StepSummary& summary() const { return summary_; }
  /// What is still written and how much has been; also the tensor files'. A budget closes it for the rest of the run.
  OutputGate& gate() { return gate_; }

  /// Committed records with has_slots keep their places in the file until their values have come. Offers each of them
  /// to `fill`, which returns true when it filled in all of them. Close() writes the rest without.
  void Resolve(const std::function<bool(Record*)>& fill);

  /// Which records save their tensors.
  void set_save_policy(SavePolicy policy) { save_policy_ = std::move(policy); }
  const SavePolicy& save_policy() const { return save_policy_; }

  /// JSON of the rows of the step's batches, which dump.json keeps behind its ops. Of the open step.
  void SetSchedule(std::string json);

  /// For tests: as if no thread could be started.
  void set_no_thread() { no_thread_ = true; }

  /// Both are used under lock(), which is recursive in no way: take it for single calls.
  std::unique_lock<std::mutex> lock() { return std::unique_lock<std::mutex>(mutex_); }
  ConstructTracker& construct() { return construct_; }
  StackTable& stacks() { return stacks_; }

 private:
  static constexpr int kMostTries = 8;  // for memory that is not there
  struct Batch {
    std::vector<Record*> records;
    std::vector<ParentPair> parents;
    std::vector<StackUse> stacks;
    size_t bytes = 0;
    bool flush = false;
  };
  Record* FromPool();
  void Recycle(Record* record);
  void RemoveOpen(Record* record);
  void Finish(Record* record);
  Status OpenFiles();
  void StartThread();
  void BoundOrder();
  bool TakeBatch(std::list<Batch>* one, bool flush) noexcept;
  void Enqueue(std::list<Batch>* one) noexcept;
  bool Order(Record* record) noexcept;
  void Drop(Record* record, std::unique_lock<std::mutex>* held);
  void HandOver(bool flush);
  void TakeFinished();
  void WriterLoop();
  void Process(Batch* batch);
  void FormatParents(const std::vector<ParentPair>& pairs);
  void Format(const Batch& batch);
  Status Write(const Batch& batch);
  Status FlushFiles();
  Status FlushStacks();
  void PutSchedule();
  void TakeUnfinished(std::vector<HeldValue>* undecided);
  Status FlushLocked();
  Status CloseFiles(const Status& flushed, const std::map<std::string, uint64_t>& skipped);
  Status WriteStacksOnce();
  void Count(StepSummary* summary) const;
  uint64_t FileBytes() const;
  Status WaitIdle();

  std::mutex mutex_;  // everything up to the queue
  std::deque<Record*> order_;
  std::vector<Record*> open_;
  std::vector<Record*> waiting_;  // committed, in order_, with values that have not come
  ConstructTracker construct_;
  StackTable stacks_;
  uint64_t committed_ = 0;
  size_t ready_ = 0;  // done records in order_
  StepFiles files_;
  SavePolicy save_policy_;
  StepSummary summary_;
  OutputGate gate_;
  bool no_thread_ = false;

  std::mutex queue_mutex_;
  std::condition_variable queue_changed_, idle_;
  std::list<Batch> queue_;
  size_t queued_records_ = 0, queued_bytes_ = 0;
  bool busy_ = false, quit_ = false, step_open_ = false;
  Status error_;
  std::thread writer_;

  std::mutex schedule_mutex_;
  std::string schedule_;  // that dump.json does not have yet

  std::mutex pool_mutex_;
  std::vector<Record*> pool_;

  // The writer thread's, and Open()'s and Close()'s while it is idle.
  std::unique_ptr<GrowingJsonFile> dump_, construct_file_, stack_file_;
  std::unique_ptr<SummaryFile> summary_file_;
  std::atomic<uint64_t> limit_{UINT64_MAX};
  std::atomic<bool> limited_{false};
  uint64_t written_ = 0;
  std::string limit_reason_, text_, parents_text_;
  std::vector<StackUse> stack_uses_;
  StackGroupBytes stack_bytes_;
  uint64_t next_stack_ = 0;
  size_t stack_flushes_ = 0;
  uint64_t counted_bytes_ = 0;
  size_t unflushed_ops_ = 0, unflushed_bytes_ = 0;
};

}  // namespace msprobe
