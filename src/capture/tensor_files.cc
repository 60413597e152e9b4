#include "capture/tensor_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/parallel.h"
#include "tensor/files/npy_writer.h"
#include "tensor/files/pt_writer.h"
#include "tensor/kernels/crc32.h"
#include "tensor/kernels/layout.h"

namespace msprobe {
namespace {

// Leaves room for the ending of the temporary name in the 255 bytes of a file name.
constexpr size_t kLongestName = 230;
// Of small tensors and links.
constexpr size_t kMostJobs = size_t{1} << 16;

Status CopyFile(const std::string& from, const std::string& to, uint64_t* bytes) {
  MSP_ASSIGN_OR_RETURN(const MappedFile source, MappedFile::Open(from));
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(to));
  constexpr size_t kPiece = size_t{1} << 20;
  for (std::string_view rest = source.text(); !rest.empty(); rest.remove_prefix(std::min(kPiece, rest.size()))) {
    MSP_RETURN_IF_ERROR(file.Write(rest.substr(0, kPiece)));
  }
  MSP_RETURN_IF_ERROR(file.Commit());
  *bytes += file.bytes_written();
  return OkStatus();
}

// In the format that the ending of its name says.
Status WriteTensor(const std::string& path, const TensorView& tensor, uint64_t* bytes) {
  return path.ends_with(".npy") ? WriteNpyFile(path, tensor, bytes) : WritePtFile(path, tensor, bytes);
}

// False without memory.
bool Fill(const TensorView& tensor, size_t bytes, TensorCopy* copy) {
  if (copy->data == nullptr) {
    copy->data.reset(new (std::nothrow) char[std::max<size_t>(bytes, 1)]);
    copy->capacity = bytes;
  }
  if (copy->data == nullptr) return false;
  copy->dtype = tensor.dtype;
  copy->shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  copy->bytes = bytes;
  Layout layout;
  if (bytes == 0 || !MakeLayout(tensor, Order::kLogical, &layout)) return true;
  char* to = copy->data.get();
  LayoutWalker(layout).Walk(0, layout.count, [&](const char* p, size_t n) {
    std::memcpy(to, p, n * layout.element);
    to += n * layout.element;
  });
  return true;
}

}  // namespace

std::shared_ptr<TensorCopy> CopyTensor(const TensorView& tensor) {
  Layout layout;
  if (!MakeLayout(tensor, Order::kLogical, &layout)) return nullptr;
  auto copy = std::make_shared<TensorCopy>();
  return Fill(tensor, static_cast<size_t>(layout.count) * layout.element, copy.get()) ? copy : nullptr;
}

std::string TensorFileName(std::string_view name, std::string_view extension) {
  std::string file(name);
  for (char& c : file) {
    if (c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '_';
  }
  if (file == name && file.size() + extension.size() <= kLongestName) return file.append(extension);
  // No longer the name itself: the checksum keeps apart what has become equal.
  char sum[16];
  std::snprintf(sum, sizeof sum, "~%08x", Crc32(name.data(), name.size()));
  size_t keep = std::min(file.size(), kLongestName - extension.size() - std::strlen(sum));
  while (keep > 0 && keep < file.size() && (static_cast<unsigned char>(file[keep]) & 0xc0) == 0x80) --keep;
  file.resize(keep);  // not within a character
  return file.append(sum).append(extension);
}

TensorFiles::~TensorFiles() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status TensorFiles::Open(const std::string& dir) {
  if (open_ && dir == dir_) return OkStatus();
  (void)Finish();
  MSP_RETURN_IF_ERROR(MakeOutputDir(dir));
  std::lock_guard<std::mutex> lock(mutex_);
  dir_ = dir;
  known_.clear();
  sources_.clear();
  known_order_.clear();
  counts_ = {};
  error_ = OkStatus();
  told_ = false;
  limit_ = UINT64_MAX;
  planned_ = 0;
  failed_ = limited_ = false;
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
  } catch (const std::system_error&) {
    return InternalError("no thread to write tensors could be started: the limit of processes (ulimit -u) is reached");
  }
  open_ = true;
  return OkStatus();
}

std::unique_ptr<TensorCopy> TensorFiles::TakeCopy(const TensorView& tensor, size_t bytes) {
  auto copy = std::make_unique<TensorCopy>();
  {
    // A buffer that is used again has its pages already.
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = free_.lower_bound(bytes);
    if (found != free_.end() && found->first <= 2 * bytes + 65536) {
      copy->capacity = found->first;
      copy->data = std::move(found->second);
      free_bytes_ -= found->first;
      free_.erase(found);
    }
  }
  return Fill(tensor, bytes, copy.get()) ? std::move(copy) : nullptr;
}

// Under the lock.
void TensorFiles::Recycle(std::unique_ptr<TensorCopy> copy) {
  if (copy->capacity + free_bytes_ + queued_bytes_ > options_.queue_bytes) return;
  const size_t capacity = copy->capacity;
  free_.emplace(capacity, std::move(copy->data));
  free_bytes_ += capacity;
}

// Under the lock. Without memory the content is not known: it is then written once more, in place of a link.
void TensorFiles::Remember(Content content, const std::string& file) noexcept {
  try {
    if (!known_.try_emplace(content, file).second) return;
  } catch (const std::bad_alloc&) {
    return;
  }
  try {
    sources_.emplace(file, content);
    known_order_.push_back(std::move(content));
  } catch (const std::bad_alloc&) {
    sources_.erase(file);
    known_.erase(content);
    return;
  }
  if (known_order_.size() <= options_.known_contents) return;
  if (const auto oldest = known_.find(known_order_.front()); oldest != known_.end()) {
    sources_.erase(oldest->second);
    known_.erase(oldest);
  }
  known_order_.pop_front();
}

// Under the lock. A second backward writes the names of the first again: what they held is no longer there to link to.
bool TensorFiles::Forget(const std::string& file) {
  const auto source = sources_.find(file);
  if (source == sources_.end()) return queued_names_.contains(file);
  known_.erase(source->second);
  sources_.erase(source);
  return true;
}

// Under the lock.
void TensorFiles::Enqueue(Job job) {
  const auto name = queued_names_.insert(job.file);
  try {
    queue_.push_back(std::move(job));
  } catch (const std::bad_alloc&) {
    queued_names_.erase(name);
    throw;
  }
}

bool TensorFiles::Save(const std::string& file, const TensorView& tensor) {
  Layout layout;
  if (!working() || !MakeLayout(tensor, Order::kLogical, &layout)) {
    Count(0, false);
    return false;
  }
  const size_t bytes = static_cast<size_t>(layout.count) * layout.element;
  Content content{HashContent(tensor), tensor.dtype, {tensor.shape, tensor.shape + tensor.ndim}};
  bool again = false;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    again = Forget(file);
    if (const auto known = known_.find(content); known != known_.end()) {
      const std::string source = known->second;
      idle_.wait(lock, [this] { return queue_.size() < kMostJobs; });
      Enqueue({file, source, nullptr});
      lock.unlock();
      changed_.notify_one();
      return true;
    }
    if (!TakeOfLimit(bytes)) {
      lock.unlock();
      Count(0, false);
      return false;
    }
    if (queued_bytes_ + bytes > options_.queue_bytes || queue_.size() >= kMostJobs) {
      lock.unlock();
      return SaveHere(std::move(content), file, tensor, again);
    }
    queued_bytes_ += bytes;
    for (; !free_.empty() && queued_bytes_ + free_bytes_ > options_.queue_bytes; free_.erase(free_.begin())) {
      free_bytes_ -= free_.begin()->first;
    }
  }
  std::unique_ptr<TensorCopy> copy;
  try {
    copy = TakeCopy(tensor, bytes);
  } catch (const std::bad_alloc&) {  // as where there is none for the elements
  }
  std::unique_lock<std::mutex> lock(mutex_);
  if (copy == nullptr) {
    queued_bytes_ -= bytes;
    lock.unlock();
    return SaveHere(std::move(content), file, tensor, again);
  }
  try {
    Enqueue({file, {}, std::move(copy)});
  } catch (const std::bad_alloc&) {
    queued_bytes_ -= bytes;
    ++counts_.dropped;
    throw;
  }
  Remember(std::move(content), file);  // links to it stand behind it in the queue
  lock.unlock();
  changed_.notify_one();
  return true;
}

// The queue is full: the thread that brings a tensor writes it, beside the one that empties the queue. A name that
// stands in the queue, or that links in it refer to, has to wait for its turn.
bool TensorFiles::SaveHere(Content content, const std::string& file, const TensorView& tensor, bool again) {
  if (again) (void)Finish();
  uint64_t written = 0;
  const Status status = WriteTensor(JoinPath(dir_, file), tensor, &written);
  Note(status, written, false);
  if (!status.ok()) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  Remember(std::move(content), file);
  return true;
}

void TensorFiles::Count(uint64_t bytes, bool saved) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++(saved ? counts_.saved : counts_.dropped);
  counts_.bytes += bytes;
}

void TensorFiles::Stop(const Status& why) {
  std::lock_guard<std::mutex> lock(mutex_);
  failed_ = true;
  if (!error_.ok()) return;
  try {
    error_ = why;
  } catch (const std::bad_alloc&) {
    error_ = OutOfMemory();
  }
}

void TensorFiles::Limit(uint64_t bytes, const std::string& reason) {
  std::lock_guard<std::mutex> lock(mutex_);
  limit_ = bytes;
  limited_ = false;
  limit_reason_ = reason;
}

// Under the lock.
bool TensorFiles::TakeOfLimit(uint64_t bytes) {
  constexpr uint64_t kFrame = 2048;  // of a file: the least that surely holds what is not elements
  planned_ += bytes + kFrame;
  if (planned_ <= limit_) return true;
  limited_ = true;  // what waits in the queue has its place and is written
  if (error_.ok()) error_ = InternalError(limit_reason_);
  return false;
}

void TensorFiles::Note(const Status& status, uint64_t bytes, bool linked) {
  if (!status.ok()) Stop(status);
  Count(bytes, status.ok());
  if (!linked || !status.ok()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  ++counts_.linked;
}

Status TensorFiles::Link(const std::string& source, const std::string& file, uint64_t* bytes) {
  const std::string from = JoinPath(dir_, source), to = JoinPath(dir_, file);
  if (link(from.c_str(), to.c_str()) == 0) return OkStatus();
  // Something of an earlier run; or a file system without links, or with too many to this file.
  if (errno == EEXIST && unlink(to.c_str()) == 0 && link(from.c_str(), to.c_str()) == 0) return OkStatus();
  return CopyFile(from, to, bytes);
}

void TensorFiles::Run(const Job& job) {
  if (failed_) return Count(0, false);
  uint64_t bytes = 0;
  if (job.copy != nullptr) {
    const Status status = WriteTensor(JoinPath(dir_, job.file), job.copy->view(), &bytes);
    return Note(status, bytes, false);
  }
  const Status status = Link(job.source, job.file, &bytes);
  Note(status, bytes, bytes == 0);
}

// Where there is no memory, the rest of the step's tensors are not saved; the thread goes on.
void TensorFiles::WithMemory(const std::function<void()>& work) noexcept {
  try {
    work();
  } catch (const std::bad_alloc&) {
    Note(OutOfMemory(), 0, false);
  }
}

void TensorFiles::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return quit_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Job job = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    WithMemory([&] { Run(job); });
    lock.lock();
    queued_names_.erase(queued_names_.find(job.file));
    if (job.copy != nullptr) {
      queued_bytes_ -= job.copy->bytes;
      lock.unlock();
      WithMemory([&] {
        std::lock_guard<std::mutex> held(mutex_);
        Recycle(std::move(job.copy));
      });
      lock.lock();
    }
    busy_ = false;
    idle_.notify_all();
  }
}

Status TensorFiles::Finish() {
  std::unique_lock<std::mutex> lock(mutex_);
  idle_.wait(lock, [this] { return queue_.empty() && !busy_; });
  return error_;
}

Status TensorFiles::Close() {
  const Status status = Finish();
  std::lock_guard<std::mutex> lock(mutex_);
  open_ = false;
  known_.clear();
  sources_.clear();
  known_order_.clear();
  free_.clear();
  free_bytes_ = 0;
  return status;
}

Status TensorFiles::status() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return error_;
}

Status TensorFiles::TakeStatus() {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(told_, !error_.ok()) ? OkStatus() : error_;
}

TensorFileCounts TensorFiles::counts() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

TensorFileCounts TensorFiles::TakeCounts() {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(counts_, {});
}

}  // namespace msprobe
