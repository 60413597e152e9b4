// The files of a step: what the writer thread, and Open() and Close() while it is idle, do with them.
#include <algorithm>
#include <utility>

#include "base/file.h"
#include "capture/format.h"
#include "capture/recorder.h"
#include "json/writer.h"

namespace msprobe {
namespace {

using Part = OutputGate::Part;

constexpr size_t kFlushOps = 1000;
constexpr size_t kFlushBytes = size_t{1} << 20;

std::string DumpHead(const StepFiles& files) {
  std::string head;
  JsonWriter json(&head, kJsonIndented);
  json.BeginObject();
  json.Key("task"), json.String(files.task);
  json.Key("level"), json.String(files.level);
  json.Key("framework"), json.String(files.names.framework);
  json.Key("dump_data_dir");
  files.tensor_dir.empty() ? json.Null() : json.String(files.tensor_dir);
  json.Key("data");
  head += "{";
  return head;
}

}  // namespace

Status Recorder::OpenFiles() {
  const auto grow = [&](const char* name, std::string head, const char* tail,
                        std::unique_ptr<GrowingJsonFile>* file) -> Status {
    MSP_ASSIGN_OR_RETURN(*file, GrowingJsonFile::Create(JoinPath(files_.dir, name), std::move(head), tail));
    return OkStatus();
  };
  summary_ = StepSummary();
  SetWriter(&summary_);
  summary_.ranks = files_.ranks;
  MSP_ASSIGN_OR_RETURN(summary_file_, SummaryFile::Create(JoinPath(files_.dir, kSummaryName), summary_));
  const char* name = files_.level == "debug" ? "debug.json" : "dump.json";
  MSP_RETURN_IF_ERROR(grow(name, DumpHead(files_), "\n }\n}", &dump_));
  if (!files_.extra_info) return OkStatus();
  MSP_RETURN_IF_ERROR(grow("construct.json", "{", "\n}", &construct_file_));
  return grow("stack.json", "{", "\n}", &stack_file_);
}

void Recorder::FormatParents(const std::vector<ParentPair>& pairs) {
  parents_text_.clear();
  if (construct_file_ == nullptr) return;
  JsonWriter parents(&parents_text_, kJsonIndented, 1);
  for (const auto& [name, parent] : pairs) {
    parents.Key(name.str());
    parent.empty() ? parents.Null() : parents.String(parent.str());
  }
}

// What is formatted keeps its memory, so the next try gets further.
void Recorder::Format(const Batch& batch) {
  for (int i = 1;; ++i) {
    try {
      text_.clear();
      JsonWriter json(&text_, kJsonIndented, 2);
      for (const Record* record : batch.records) FormatRecord(*record, files_.names, &json);
      FormatParents(batch.parents);
      if (stack_file_ != nullptr) stack_uses_.reserve(stack_uses_.size() + batch.stacks.size());
      return;
    } catch (const std::bad_alloc&) {
      if (i == kMostTries) throw;
    }
  }
}

Status Recorder::Write(const Batch& batch) {
  Format(batch);
  if (limit_ != UINT64_MAX) {
    written_ += text_.size() + parents_text_.size() + (stack_file_ != nullptr ? stack_bytes_.Add(batch.stacks) : 0);
    if (written_ > limit_) {
      limited_ = true;
      return InternalError(limit_reason_);
    }
  }
  unflushed_ops_ += batch.records.size();
  unflushed_bytes_ += text_.size();
  if (!text_.empty()) MSP_RETURN_IF_ERROR(dump_->Append(text_, batch.records.size()));
  if (!parents_text_.empty()) {
    unflushed_bytes_ += parents_text_.size();
    MSP_RETURN_IF_ERROR(construct_file_->Append(parents_text_, batch.parents.size()));
  }
  if (stack_file_ != nullptr) stack_uses_.insert(stack_uses_.end(), batch.stacks.begin(), batch.stacks.end());
  if (!batch.flush && unflushed_ops_ < kFlushOps && unflushed_bytes_ < kFlushBytes) return OkStatus();
  return FlushFiles();
}

// dump.json and the count come last: what is counted has its stack and its parent.
Status Recorder::FlushFiles() {
  unflushed_ops_ = unflushed_bytes_ = 0;
  Status status;
  const auto first_error = [&](Status s) {
    if (status.ok()) status = std::move(s);
  };
  if (stack_file_ != nullptr) first_error(FlushStacks());
  if (construct_file_ != nullptr) first_error(construct_file_->Flush());
  PutSchedule();
  first_error(dump_->Flush());
  summary_.ops = dump_->entries();
  const uint64_t bytes = FileBytes();
  if (bytes > counted_bytes_) gate_.AddWritten(Part::kOps, bytes - std::exchange(counted_bytes_, bytes));
  summary_.bytes = bytes;
  first_error(summary_file_->Update(summary_));
  return status;
}

void Recorder::SetSchedule(std::string json) {
  std::lock_guard<std::mutex> held(schedule_mutex_);
  schedule_ = std::move(json);
}

void Recorder::PutSchedule() {
  std::lock_guard<std::mutex> held(schedule_mutex_);
  if (schedule_.empty()) return;
  dump_->SetTail("\n },\n \"schedule\": " + std::exchange(schedule_, {}) + "\n}");
}

// A stack that was used before the last flush, too, is listed once more; Close() writes each once.
Status Recorder::FlushStacks() {
  if (stack_uses_.empty()) return stack_file_->Flush();
  text_.clear();
  AppendStackGroups(stack_uses_, &next_stack_, &text_);
  stack_uses_.clear();
  stack_bytes_.Restart();
  ++stack_flushes_;
  MSP_RETURN_IF_ERROR(stack_file_->Append(text_));
  return stack_file_->Flush();
}

uint64_t Recorder::FileBytes() const {
  return dump_->bytes() + (construct_file_ ? construct_file_->bytes() : 0) + (stack_file_ ? stack_file_->bytes() : 0);
}

Status Recorder::CloseFiles(const Status& flushed, const std::map<std::string, uint64_t>& skipped) {
  Status status = flushed;
  const auto first_error = [&](Status s) {
    if (status.ok()) status = std::move(s);
  };
  // Each is tried once more where it failed before: space may have come back.
  if (stack_file_ != nullptr) first_error(stack_file_->Close());
  if (construct_file_ != nullptr) first_error(construct_file_->Close());
  PutSchedule();
  first_error(dump_->Close());
  if (status.ok() && stack_flushes_ > 1) first_error(WriteStacksOnce());
  const uint64_t bytes = FileBytes();
  if (bytes > counted_bytes_) gate_.AddWritten(Part::kOps, bytes - counted_bytes_);
  Count(&summary_);
  summary_.skipped = skipped;
  const bool whole = status.ok() && summary_.ops_not_written == 0 && summary_.tensors_not_written == 0 &&
                     summary_.ops_stopped.empty() && summary_.tensors_stopped.empty();
  summary_.state = whole ? "complete" : "incomplete";
  first_error(summary_file_->Update(summary_));
  return status;
}

void Recorder::Count(StepSummary* summary) const {
  summary->ops = dump_->entries();
  summary->ops_not_written = committed_ - std::min(committed_, summary->ops);
  summary->bytes = FileBytes();
  const OutputGate::Totals ops = gate_.step(Part::kOps), tensors = gate_.step(Part::kTensors);
  summary->ops_stopped = ops.reason;
  summary->tensors_stopped = tensors.reason;
  summary->tensor_files = tensors.files;
  summary->tensor_bytes = tensors.bytes;
  summary->tensors_not_written = tensors.skipped;
}

Status Recorder::WriteStacksOnce() {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(JoinPath(files_.dir, "stack.json")));
  MSP_RETURN_IF_ERROR(stacks_.WriteAll([&](std::string_view piece) { return file.Write(piece); }));
  return file.Commit();
}

}  // namespace msprobe
