#include "capture/recorder.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/parallel.h"

namespace msprobe {
namespace {

using Part = OutputGate::Part;
using Until = OutputGate::Until;

constexpr size_t kBatchRecords = 128;       // handed to the writer thread at a time
constexpr size_t kMaxQueuedRecords = 8192;  // then the recording thread waits ...
constexpr size_t kMaxQueuedBytes = size_t{48} << 20;
constexpr size_t kMostWaiting = 8192;                  // behind a record that is not finished, then it loses its place
constexpr auto kFlushPause = std::chrono::seconds(1);  // nothing new for so long: what there is is flushed
constexpr size_t kPoolRecords = 2048;
constexpr size_t kMostPooledBytes = size_t{16} << 10;

size_t MemoryOf(const Record& r) {
  return sizeof r + r.nodes.capacity() * sizeof(RecordNode) + r.tensors.capacity() * sizeof(TensorRecord) +
         r.dims.capacity() * sizeof(int64_t) + r.text.capacity();
}

Status NoMemory(const std::string& dir) noexcept {
  try {
    return InternalError(dir + " could not be written (not enough memory): the ops since the last flush are lost");
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

}  // namespace

Recorder::Recorder() { pool_.reserve(kPoolRecords); }

Recorder::~Recorder() {
  {
    std::lock_guard<std::mutex> lock(queue_mutex_);
    quit_ = true;
  }
  queue_changed_.notify_all();
  if (writer_.joinable()) writer_.join();
  for (Record* r : open_) delete r;
  for (Record* r : waiting_) delete r;
  for (Record* r : order_) {
    if (r->done) delete r;
  }
  for (Record* r : pool_) delete r;
}

Status Recorder::Open(const StepFiles& files) {
  auto held = lock();
  if (dump_ != nullptr && files.dir == files_.dir) return OkStatus();
  files_ = files;
  SetSchedule({});
  {
    std::lock_guard<std::mutex> queue(queue_mutex_);
    error_ = OkStatus();
  }
  construct_.Reset();
  stacks_.ResetUses();
  gate_.BeginStep();
  stack_bytes_.Restart();
  limit_ = UINT64_MAX;
  limited_ = false;
  committed_ = next_stack_ = stack_flushes_ = counted_bytes_ = 0;
  unflushed_ops_ = unflushed_bytes_ = 0;
  const Status status = OpenFiles();
  written_ = status.ok() ? FileBytes() + 64 : 0;  // 64: what ends the files
  if (!status.ok()) {
    dump_.reset(), construct_file_.reset(), stack_file_.reset(), summary_file_.reset();
    return status;
  }
  StartThread();
  std::lock_guard<std::mutex> queue(queue_mutex_);
  step_open_ = true;
  queue_changed_.notify_one();  // from now on it looks once a second
  return OkStatus();
}

void Recorder::StartThread() {
  if (writer_.joinable() || no_thread_) return;
  // Signals are the user's: none is delivered to this thread, which would run the user's handler or die of SIGXFSZ.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    writer_ = std::thread([this] { WriterLoop(); });
  } catch (const std::system_error&) {  // no threads left: the recording thread writes
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Record* Recorder::FromPool() {
  std::lock_guard<std::mutex> lock(pool_mutex_);
  if (pool_.empty()) return new Record;
  Record* record = pool_.back();
  pool_.pop_back();
  return record;
}

void Recorder::Recycle(Record* record) {
  record->Clear();
  std::lock_guard<std::mutex> lock(pool_mutex_);
  if (pool_.size() < kPoolRecords && MemoryOf(*record) < kMostPooledBytes) {
    pool_.push_back(record);
  } else {
    delete record;
  }
}

Record* Recorder::Acquire(const OpName& name) {
  Record* record = FromPool();
  record->name = name;
  record->save = save_policy_.For(name);
  auto held = lock();
  record->open_index = static_cast<uint32_t>(open_.size());
  try {
    open_.push_back(record);
  } catch (const std::bad_alloc&) {
    held.unlock();
    Recycle(record);
    throw;
  }
  return record;
}

void Recorder::RemoveOpen(Record* record) {
  const uint32_t index = record->open_index;
  open_[index] = open_.back();
  open_[index]->open_index = index;
  open_.pop_back();
}

void Recorder::Reserve(Record* record) {
  if (!gate_.open(Part::kOps)) return;
  auto held = lock();
  try {
    order_.push_back(record);
    record->queued = true;
  } catch (const std::bad_alloc&) {  // it stands where it is committed
  }
}

void Recorder::Commit(Record* record) {
  record->held.clear();  // here, where the framework's objects may be let go
  auto held = lock();
  RemoveOpen(record);
  ++committed_;
  if (!record->IsWhole()) {
    if (record->queued) order_.erase(std::find(order_.begin(), order_.end(), record));
    held.unlock();
    Recycle(record);
  } else if (!record->queued && !gate_.open(Part::kOps)) {
    Drop(record, &held);
  } else if (!record->has_slots) {
    Finish(record);
  } else {
    bool waits = false;
    try {
      waiting_.push_back(record);
      waits = true;
      if (!record->queued) order_.push_back(record);
      record->queued = true;
    } catch (const std::bad_alloc&) {
    }
    if (!waits) Finish(record);  // without its values
  }
}

// Goes to the writer at its place, or here.
void Recorder::Finish(Record* record) {
  if (!Order(record) || ++ready_ < kBatchRecords) return;
  if (!order_.front()->done) {
    if (order_.size() < kMostWaiting) return;
    BoundOrder();
  }
  HandOver(false);
}

void Recorder::Drop(Record* record, std::unique_lock<std::mutex>* held) {
  if (order_.empty()) {
    construct_.Take();
    stacks_.DropNewUses();
  } else if (order_.front()->done) {
    HandOver(false);
  }
  held->unlock();
  Recycle(record);
}

void Recorder::Resolve(const std::function<bool(Record*)>& fill) {
  auto held = lock();
  std::vector<Record*> waiting = std::exchange(waiting_, {});
  std::erase_if(waiting, [&](Record* record) {
    if (!fill(record)) return false;
    record->has_slots = false;
    Finish(record);
    return true;
  });
  waiting_ = std::move(waiting);
}

// The head is not finished and thousands wait behind it.
void Recorder::BoundOrder() {
  while (!order_.empty() && !order_.front()->done) {
    order_.front()->queued = false;
    order_.pop_front();
  }
}

void Recorder::Discard(Record* record) {
  record->held.clear();
  auto held = lock();
  RemoveOpen(record);
  if (record->queued) order_.erase(std::find(order_.begin(), order_.end(), record));
  held.unlock();
  Recycle(record);
}

// The finished head of the order, and what else there is to write. False: there is no memory, and nothing was taken.
bool Recorder::TakeBatch(std::list<Batch>* one, bool flush) noexcept {
  size_t count = 0;
  while (count < order_.size() && order_[count]->done) ++count;
  try {
    one->emplace_back().records.reserve(count);
    one->back().stacks = stacks_.TakeUses();
  } catch (const std::bad_alloc&) {
    return false;
  }
  Batch* batch = &one->back();
  batch->flush = flush;
  batch->parents = construct_.Take();
  for (size_t i = 0; i < count; ++i) {
    batch->records.push_back(order_.front());
    batch->bytes += MemoryOf(*order_.front());
    order_.pop_front();
  }
  ready_ -= count;
  return true;
}

// Under the lock of the queue.
void Recorder::Enqueue(std::list<Batch>* one) noexcept {
  queued_records_ += one->back().records.size();
  queued_bytes_ += one->back().bytes;
  queue_.splice(queue_.end(), *one);
}

// To the writer's queue. Formatting waits for nobody; this waits when the queue is long.
void Recorder::HandOver(bool flush) {
  std::list<Batch> one;
  bool taken = TakeBatch(&one, flush);
  // Otherwise the next op tries again; at the end there is none.
  for (int i = 0; !taken && flush && i < kMostTries; ++i) one.clear(), taken = TakeBatch(&one, flush);
  std::unique_lock<std::mutex> queue(queue_mutex_);
  if (!taken) {
    if (!flush || !error_.ok()) return;
    error_ = NoMemory(files_.dir);
    gate_.Stop(Part::kOps, Until::kEndOfStep, error_.message());
    return;
  }
  if (!writer_.joinable()) {
    queue.unlock();
    Process(&one.back());
    return;
  }
  idle_.wait(queue, [this] { return queued_records_ < kMaxQueuedRecords && queued_bytes_ < kMaxQueuedBytes; });
  Enqueue(&one);
  queue.unlock();
  queue_changed_.notify_one();
}

// Recording pauses (or hangs, and the run will be killed): what is finished goes to the files.
void Recorder::TakeFinished() {
  std::unique_lock<std::mutex> held(mutex_, std::try_to_lock);
  if (!held.owns_lock() || dump_ == nullptr) return;
  std::list<Batch> one;
  if (!TakeBatch(&one, true)) return;  // the next look tries again
  const Batch& batch = one.back();
  if (batch.records.empty() && batch.parents.empty() && batch.stacks.empty() && unflushed_bytes_ == 0) return;
  std::lock_guard<std::mutex> queue(queue_mutex_);
  Enqueue(&one);
}

void Recorder::WriterLoop() {
  std::unique_lock<std::mutex> queue(queue_mutex_);
  const auto wanted = [this] { return quit_ || !queue_.empty(); };
  while (true) {
    if (!step_open_) {
      queue_changed_.wait(queue, [&] { return wanted() || step_open_; });
    } else if (!queue_changed_.wait_for(queue, kFlushPause, wanted)) {
      queue.unlock();
      TakeFinished();
      queue.lock();
    }
    if (queue_.empty()) {
      if (quit_) return;
      continue;
    }
    std::list<Batch> one;
    one.splice(one.end(), queue_, queue_.begin());
    busy_ = true;
    queue.unlock();
    Process(&one.back());
    queue.lock();
    queued_records_ -= one.back().records.size();
    queued_bytes_ -= one.back().bytes;
    busy_ = false;
    idle_.notify_all();
  }
}

// After an error the rest of the step is dropped; Close() tries once more to write what was formatted before.
void Recorder::Process(Batch* batch) {
  bool failed = false;
  {
    std::lock_guard<std::mutex> queue(queue_mutex_);
    failed = !error_.ok();
  }
  if (!failed) {
    Status status;
    try {
      status = Write(*batch);
    } catch (const std::bad_alloc&) {
      status = NoMemory(files_.dir);
    }
    if (!status.ok()) {
      gate_.Stop(Part::kOps, Until::kEndOfStep, status.message());
      std::lock_guard<std::mutex> queue(queue_mutex_);
      error_ = std::move(status);
    }
  }
  for (Record* record : batch->records) Recycle(record);
}

void Recorder::Limit(uint64_t bytes, const std::string& reason) {
  auto held = lock();
  limit_reason_ = reason;
  limit_ = bytes;
}

Status Recorder::WaitIdle() {
  std::unique_lock<std::mutex> queue(queue_mutex_);
  idle_.wait(queue, [this] { return queue_.empty() && !busy_; });
  return error_;
}

Status Recorder::Flush() {
  auto held = lock();
  try {
    return FlushLocked();
  } catch (const std::bad_alloc&) {  // for the text of the error
    return NoMemory(files_.dir);
  }
}

Status Recorder::FlushLocked() {
  if (dump_ == nullptr) return OkStatus();
  HandOver(true);
  return WaitIdle();
}

// What waits for values is written without them, and of what is not finished that which has a place.
void Recorder::TakeUnfinished(std::vector<HeldValue>* undecided) {
  for (Record* record : std::exchange(waiting_, {})) {
    if (Order(record)) ++ready_;
  }
  for (Record* record : std::exchange(open_, {})) {
    try {
      undecided->insert(undecided->end(), record->held.begin(), record->held.end());
    } catch (const std::bad_alloc&) {  // then they go here
    }
    record->held.clear();
    const bool wanted = record->queued || record->keep_unfinished;
    committed_ += wanted;
    if (wanted && record->IsWhole()) {
      if (Order(record)) ++ready_;
    } else {
      if (record->queued) order_.erase(std::find(order_.begin(), order_.end(), record));
      Recycle(record);
    }
  }
}

// Done, and at its place among the others. False: without memory it is gone.
bool Recorder::Order(Record* record) noexcept {
  record->done = true;
  if (record->queued) return true;
  try {
    order_.push_back(record);
    return true;
  } catch (const std::bad_alloc&) {
    Recycle(record);
    return false;
  }
}

Status Recorder::Close(const std::map<std::string, uint64_t>& skipped) {
  std::vector<HeldValue> undecided;  // let go without the lock: that may wait for other threads
  {
    auto held = lock();
    if (dump_ == nullptr) return OkStatus();
    TakeUnfinished(&undecided);
  }
  undecided.clear();
  auto held = lock();
  Status flushed;
  try {
    flushed = FlushLocked();
  } catch (const std::bad_alloc&) {  // for the text of the error
    flushed = NoMemory(files_.dir);
  }
  {
    std::lock_guard<std::mutex> queue(queue_mutex_);
    step_open_ = false;
  }
  Status closed;
  try {
    closed = CloseFiles(flushed, skipped);
  } catch (const std::bad_alloc&) {
    closed = NoMemory(files_.dir);
  }
  dump_.reset(), construct_file_.reset(), stack_file_.reset(), summary_file_.reset();
  stack_uses_.clear();
  construct_.Reset();
  stacks_.ResetUses();
  return closed;
}

}  // namespace msprobe
