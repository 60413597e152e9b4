#include "capture/recorder.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "capture/format.h"

namespace msprobe {
namespace {

constexpr size_t kBatchRecords = 128;       // handed to the writer thread at a time
constexpr size_t kMaxQueuedRecords = 8192;  // then the recording thread waits
constexpr size_t kFlushOps = 1000;
constexpr size_t kFlushBytes = size_t{1} << 20;
constexpr size_t kPoolRecords = 4096;
constexpr size_t kFirstStackWrite = 4096;

std::string DumpHead(const StepFiles& files) {
  std::string head;
  JsonStream json(&head);
  json.BeginObject();
  json.Key("task"), json.String(files.task);
  json.Key("level"), json.String(files.level);
  json.Key("framework"), json.String(files.framework);
  json.Key("dump_data_dir");
  files.tensor_dir.empty() ? json.Null() : json.String(files.tensor_dir);
  json.Key("data");
  head += "{";
  return head;
}

Status WriteWhole(const std::string& path, std::string_view text) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(text));
  return file.Commit();
}

}  // namespace

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
  {
    std::lock_guard<std::mutex> queue(queue_mutex_);
    error_ = OkStatus();
  }
  construct_.Reset();
  stacks_.ResetUses();
  next_stack_write_ = kFirstStackWrite;
  committed_ = written_ = 0;
  limit_ = UINT64_MAX;
  limited_ = false;
  MSP_ASSIGN_OR_RETURN(dump_,
                       GrowingJsonFile::Create(JoinPath(files.dir, files.level == "debug" ? "debug.json" : "dump.json"),
                                               DumpHead(files), "\n }\n}"));
  MSP_RETURN_IF_ERROR(dump_->Flush());
  if (files.extra_info) {
    MSP_ASSIGN_OR_RETURN(construct_file_, GrowingJsonFile::Create(JoinPath(files.dir, "construct.json"), "{", "\n}"));
    MSP_RETURN_IF_ERROR(construct_file_->Flush());
    MSP_RETURN_IF_ERROR(WriteStacks());
  }
  if (!writer_.joinable()) writer_ = std::thread([this] { WriterLoop(); });
  return OkStatus();
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
  if (pool_.size() < kPoolRecords && record->text.capacity() < (size_t{1} << 16)) {
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
  open_.push_back(record);
  return record;
}

void Recorder::RemoveOpen(Record* record) {
  const uint32_t index = record->open_index;
  open_[index] = open_.back();
  open_[index]->open_index = index;
  open_.pop_back();
}

void Recorder::Reserve(Record* record) {
  auto held = lock();
  record->queued = true;
  order_.push_back(record);
}

void Recorder::Commit(Record* record) {
  record->held.clear();  // here, where the framework's objects may be let go
  auto held = lock();
  RemoveOpen(record);
  if (!std::exchange(record->queued, true)) order_.push_back(record);
  ++committed_;
  record->has_slots ? waiting_.push_back(record) : Finish(record);
}

void Recorder::Finish(Record* record) {
  record->done = true;
  if (++ready_ >= kBatchRecords && order_.front()->done) HandOver(false);
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

void Recorder::Discard(Record* record) {
  record->held.clear();
  auto held = lock();
  RemoveOpen(record);
  if (record->queued) order_.erase(std::find(order_.begin(), order_.end(), record));
  held.unlock();
  Recycle(record);
}

// Moves the finished head of the order to the writer's queue. Formatting waits for nobody; this waits when the queue is
// long.
void Recorder::HandOver(bool flush) {
  Batch batch;
  batch.flush = flush;
  while (!order_.empty() && order_.front()->done) {
    batch.records.push_back(order_.front());
    order_.pop_front();
  }
  ready_ -= batch.records.size();
  batch.parents = construct_.Take();
  Status stacks;
  if (files_.extra_info && stacks_.uses() >= next_stack_write_) {
    // Written whole each time the number of uses doubles: after a crash most of it is there, at a constant cost per op.
    next_stack_write_ = 2 * stacks_.uses();
    stacks = WriteStacks();
  }
  std::unique_lock<std::mutex> queue(queue_mutex_);
  if (!stacks.ok() && error_.ok()) error_ = stacks;
  idle_.wait(queue, [this] { return queued_records_ < kMaxQueuedRecords; });
  queued_records_ += batch.records.size();
  queue_.push_back(std::move(batch));
  queue.unlock();
  queue_changed_.notify_one();
}

void Recorder::WriterLoop() {
  std::unique_lock<std::mutex> queue(queue_mutex_);
  while (true) {
    queue_changed_.wait(queue, [this] { return quit_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Batch batch = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    const bool broken = !error_.ok();
    queue.unlock();
    Status status = broken ? OkStatus() : Write(batch);
    for (Record* record : batch.records) Recycle(record);
    queue.lock();
    if (!status.ok()) error_ = status;
    queued_records_ -= batch.records.size();
    busy_ = false;
    idle_.notify_all();
  }
}

Status Recorder::Write(const Batch& batch) {
  text_.clear();
  JsonStream json(&text_, 2);
  for (const Record* record : batch.records) FormatRecord(*record, &json);
  written_ += text_.size();
  if (written_ > limit_) {
    limited_ = true;
    return InternalError(limit_reason_);
  }
  if (!text_.empty()) MSP_RETURN_IF_ERROR(dump_->Append(text_));
  unflushed_ops_ += batch.records.size();
  unflushed_bytes_ += text_.size();
  if (construct_file_ != nullptr && !batch.parents.empty()) {
    text_.clear();
    JsonStream parents(&text_, 1);
    for (const auto& [name, parent] : batch.parents) {
      parents.Key(name.str());
      parent.empty() ? parents.Null() : parents.String(parent.str());
    }
    written_ += text_.size();
    MSP_RETURN_IF_ERROR(construct_file_->Append(text_));
  }
  if (!batch.flush && unflushed_ops_ < kFlushOps && unflushed_bytes_ < kFlushBytes) return OkStatus();
  unflushed_ops_ = unflushed_bytes_ = 0;
  MSP_RETURN_IF_ERROR(dump_->Flush());
  return construct_file_ != nullptr ? construct_file_->Flush() : OkStatus();
}

void Recorder::Limit(uint64_t bytes, const std::string& reason) {
  auto held = lock();
  limit_reason_ = reason;
  limit_ = bytes;
}

Status Recorder::WriteStacks() { return WriteWhole(JoinPath(files_.dir, "stack.json"), stacks_.Json()); }

Status Recorder::WaitIdle() {
  std::unique_lock<std::mutex> queue(queue_mutex_);
  idle_.wait(queue, [this] { return queue_.empty() && !busy_; });
  return error_;
}

Status Recorder::Flush() {
  auto held = lock();
  if (dump_ == nullptr) return OkStatus();
  HandOver(true);
  Status stacks = files_.extra_info ? WriteStacks() : OkStatus();
  Status written = WaitIdle();
  return written.ok() ? stacks : written;
}

Status Recorder::Close() {
  std::vector<HeldValue> undecided;  // let go without the lock: that may wait for other threads
  {
    auto held = lock();
    if (dump_ == nullptr) return OkStatus();
    for (Record* record : std::exchange(waiting_, {})) {
      record->done = true;
      ++ready_;
    }
    std::vector<Record*> unfinished = std::exchange(open_, {});
    for (Record* record : unfinished) {
      undecided.insert(undecided.end(), record->held.begin(), record->held.end());
      record->held.clear();
      record->done = true;
      if (record->queued) {
        ++ready_;
      } else if (record->keep_unfinished) {
        order_.push_back(record);
        ++ready_;
      } else {
        Recycle(record);
      }
    }
  }
  undecided.clear();
  Status status = Flush();
  auto held = lock();
  Status dump = dump_->Close(), parents = construct_file_ != nullptr ? construct_file_->Close() : OkStatus();
  dump_.reset();
  construct_file_.reset();
  construct_.Reset();
  stacks_.ResetUses();
  for (const Status* s : {&status, &dump, &parents}) {
    if (!s->ok()) return *s;
  }
  return OkStatus();
}

}  // namespace msprobe
