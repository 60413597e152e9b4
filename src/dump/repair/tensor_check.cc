#include "dump/repair/tensor_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <unordered_set>

#include "base/file.h"
#include "base/message.h"
#include "base/name_hash.h"
#include "base/temp_names.h"
#include "base/text.h"
#include "json/members.h"
#include "tensor/files/pt_reader.h"
#include "tensor/kernels/dtype.h"

namespace msprobe {
namespace {

constexpr size_t kMostNames = 3;

struct Group {
  uint64_t count = 0;
  std::string names;
  void Add(std::string_view name, std::string_view why = {}) {
    if (count++ >= kMostNames) return;
    names += (names.empty() ? "" : ", ") + Shown(name);
    if (!why.empty()) names += " (" + std::string(why) + ")";
  }
};

/// Elements times size; nothing for shapes and types that are none.
bool BytesOf(const JsonValue& tensor, uint64_t* bytes) {
  const JsonValue *shape = tensor.Find("shape"), *dtype = tensor.Find("dtype");
  if (!shape || !shape->IsArray() || !dtype || !dtype->IsString()) return false;
  *bytes = ElementSize(ParseDType(dtype->Text()));
  if (*bytes == 0) return false;
  for (const JsonValue& d : shape->Items()) {
    if (!d.IsUInt() || __builtin_mul_overflow(*bytes, d.UInt(), bytes)) return false;
  }
  return true;
}

std::string Shape(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (const int64_t d : shape) out += (out.size() > 1 ? ", " : "") + std::to_string(d);
  return out + "]";
}

/// Empty, or how the tensor of the file differs from what dump.json says of it.
std::string Difference(const PtTensor& file, const JsonValue& tensor) {
  std::vector<int64_t> shape;
  const JsonValue *said = tensor.Find("shape"), *dtype = tensor.Find("dtype");
  if (!said || !said->IsArray() || !dtype || !dtype->IsString()) return {};
  for (const JsonValue& d : said->Items()) shape.push_back(d.IsInt() ? d.Int() : -1);
  if (shape != file.shape) return Shape(file.shape) + " in the file, " + Shape(shape) + " in dump.json";
  const DType type = ParseDType(dtype->Text());
  if (type == DType::kUnknown || type == file.dtype) return {};
  return std::string(DTypeName(file.dtype)) + " in the file, " + std::string(DTypeName(type)) + " in dump.json";
}

}  // namespace

struct TensorCheck::State {
  std::string dir;
  int fd = -1;
  bool looked = false;
  std::unordered_set<size_t> named;  // hashes of file names
  Group missing, empty, small, cut, unsafe, other, other_tensor, temporary, unreadable;

  void Open() {
    if (looked) return;
    looked = true;
    fd = open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
};

TensorCheck::TensorCheck(const std::string& rank_dir, std::string_view data_dir) : state_(new State) {
  state_->dir = JoinPath(rank_dir, "dump_tensor_data");
  if (!IsDirectory(state_->dir) && !data_dir.empty()) state_->dir = data_dir;
}

TensorCheck::~TensorCheck() {
  if (state_->fd >= 0) close(state_->fd);
}

void TensorCheck::Check(const JsonValue& tensor) {
  const JsonValue* data_name = tensor.Find("data_name");
  if (!data_name || !data_name->IsString()) return;
  State& s = *state_;
  const std::string name(data_name->Text());
  if (name == "-1") return;  // the earlier tool's word for: not saved
  if (name.empty() || name.front() == '.' || Contains(name, "/") || name.find('\0') != std::string::npos) {
    s.unsafe.Add(name);
    return;
  }
  s.named.insert(HashName64(name));
  s.Open();
  struct stat st {};
  const int file = s.fd < 0 ? -1 : openat(s.fd, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (file < 0) {
    if (s.fd < 0 || errno == ENOENT) {
      s.missing.Add(name);
    } else {
      s.unreadable.Add(name, std::strerror(errno));
    }
    return;
  }
  uint64_t bytes = 0;
  if (fstat(file, &st) != 0 || !S_ISREG(st.st_mode)) {
    s.unreadable.Add(name, "not a regular file");
  } else if (st.st_size == 0) {
    s.empty.Add(name);
  } else if (BytesOf(tensor, &bytes) && static_cast<uint64_t>(st.st_size) < bytes) {
    s.small.Add(name, std::to_string(st.st_size) + " bytes for a tensor of " + std::to_string(bytes));
  } else if (CheckContent(name, tensor)) {
    ++good_;
    bytes_ += static_cast<uint64_t>(st.st_size);
  }
  close(file);
}

bool TensorCheck::CheckContent(const std::string& name, const JsonValue& tensor) {
  if (!EndsWith(name, ".pt")) return true;
  const auto file = PtFile::Open(JoinPath(state_->dir, name));
  if (!file.ok()) {
    state_->cut.Add(name);
    return false;
  }
  const PtTensor* saved = file->tensor();
  const std::string difference = saved != nullptr ? Difference(*saved, tensor) : std::string();
  if (!difference.empty()) state_->other_tensor.Add(name, difference);
  return difference.empty();
}

void TensorCheck::Report(std::vector<VerifyFinding>* out) {
  State& s = *state_;
  s.Open();
  if (DIR* dir = s.fd < 0 ? nullptr : opendir(s.dir.c_str())) {
    while (const dirent* entry = readdir(dir)) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (IsTempName(name)) {
        s.temporary.Add(name);
      } else if (!s.named.contains(HashName64(name))) {
        s.other.Add(name);
      }
    }
    closedir(dir);
  }
  const auto report = [&](const char* kind, const Group& group, const Message& what, bool note = false) {
    if (group.count == 0) return;
    const std::string names = group.count > kMostNames ? group.names + ", ..." : group.names;
    out->push_back({kind, group.count, Msg("{}: {}", what, names), note});
  };
  report("tensor_missing", s.missing, Msg("{} tensor files are not in {}", s.missing.count, s.dir));
  report("tensor_empty", s.empty, Msg("{} tensor files are empty", s.empty.count));
  report("tensor_size", s.small, Msg("{} tensor files are too small", s.small.count));
  report("tensor_cut", s.cut, Msg("{} tensor files are cut or no torch files", s.cut.count));
  report("tensor_differs", s.other_tensor,
         Msg("{} tensor files do not hold the tensor that dump.json describes", s.other_tensor.count));
  report("tensor_unreadable", s.unreadable, Msg("{} tensor files cannot be read", s.unreadable.count));
  report("unsafe_name", s.unsafe, Msg("{} names of tensor files lead elsewhere and were not followed", s.unsafe.count));
  report("temporary_file", s.temporary,
         Msg("{} temporary tensor files of a process that was killed", s.temporary.count));
  report("tensor_unnamed", s.other, Msg("{} files of tensors are named by no op", s.other.count), true);
}

}  // namespace msprobe
