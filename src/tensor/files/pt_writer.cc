#include "tensor/files/pt_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/file.h"
#include "tensor/kernels/crc32.h"
#include "tensor/kernels/layout.h"

namespace msprobe {
namespace {

constexpr uint64_t kMost32 = 0xffffffffu;
constexpr size_t kAlignment = 64;

// Name of the storage class, or null for types that are stored as bytes and named themselves.
const char* StorageClass(DType t) {
  switch (t) {
    case DType::kFloat32: return "FloatStorage";
    case DType::kFloat64: return "DoubleStorage";
    case DType::kFloat16: return "HalfStorage";
    case DType::kBFloat16: return "BFloat16Storage";
    case DType::kInt8: return "CharStorage";
    case DType::kInt16: return "ShortStorage";
    case DType::kInt32: return "IntStorage";
    case DType::kInt64: return "LongStorage";
    case DType::kUInt8: return "ByteStorage";
    case DType::kBool: return "BoolStorage";
    case DType::kComplex64: return "ComplexFloatStorage";
    case DType::kComplex128: return "ComplexDoubleStorage";
    default: return nullptr;
  }
}

template <typename T>
void Put(std::string* out, T v) {  // little endian, as every machine this runs on
  out->append(reinterpret_cast<const char*>(&v), sizeof v);
}

void PickleInt(std::string* out, uint64_t v) {
  if (v < 0x100) {
    out->push_back('K');
    Put(out, static_cast<uint8_t>(v));
  } else if (v < 0x10000) {
    out->push_back('M');
    Put(out, static_cast<uint16_t>(v));
  } else if (v < 0x80000000u) {
    out->push_back('J');
    Put(out, static_cast<uint32_t>(v));
  } else {
    out->append("\x8a\x08");
    Put(out, v);
  }
}

void PickleText(std::string* out, std::string_view text) {
  out->push_back('X');
  Put(out, static_cast<uint32_t>(text.size()));
  out->append(text);
}

void PickleTuple(std::string* out, std::span<const int64_t> values) {
  if (values.empty()) return out->push_back(')');
  if (values.size() > 3) out->push_back('(');
  for (int64_t v : values) PickleInt(out, static_cast<uint64_t>(v));
  constexpr std::array<char, 4> kShort = {')', '\x85', '\x86', '\x87'};
  out->push_back(values.size() > 3 ? 't' : kShort[values.size()]);
}

// _rebuild_tensor_v2(storage, 0, shape, strides, requires_grad=False, OrderedDict()), or _v3 with the dtype behind it.
std::string Pickle(DType dtype, std::span<const int64_t> shape, uint64_t count) {
  const char* storage = StorageClass(dtype);
  std::string out = "\x80\x02";
  out.append("ctorch._utils\n_rebuild_tensor_v").append(storage ? "2\n((" : "3\n((");
  PickleText(&out, "storage");
  storage ? out.append("ctorch\n").append(storage) : out.append("ctorch.storage\nUntypedStorage");
  out.push_back('\n');
  PickleText(&out, "0");
  PickleText(&out, "cpu");
  PickleInt(&out, storage ? count : count * ElementSize(dtype));
  out.append("tQ");
  PickleInt(&out, 0);
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(shape[i], 1);
  }
  PickleTuple(&out, shape);
  PickleTuple(&out, strides);
  out.append(
      "\x89"
      "ccollections\nOrderedDict\n)R");
  if (!storage) out.append("ctorch\n").append(DTypeName(dtype)).push_back('\n');
  out.append("tR.");
  return out;
}

// A zip archive of stored members, one of which is too large to be held here: its place is the end of the head.
class Archive {
 public:
  Archive(std::string_view stem, PtFrame* frame) : stem_(stem), out_(&frame->head), frame_(frame) {}

  void Member(std::string_view name, std::string_view text) {
    Header(name, text.size(), Crc32(text.data(), text.size()));
    out_->append(text);
  }
  void LargeMember(std::string_view name, uint64_t size, uint32_t crc) {
    Header(name, size, crc);
    base_ = out_->size() + size;
    out_ = &frame_->tail;
  }
  void End() {
    const uint64_t begin = At(), size = directory_.size();
    out_->append(directory_);
    const bool large = begin >= kMost32;
    if (large) End64(begin, size);
    Put<uint32_t>(out_, 0x06054b50);
    Put<uint32_t>(out_, 0);  // numbers of disks
    Put<uint16_t>(out_, members_);
    Put<uint16_t>(out_, members_);
    Put<uint32_t>(out_, static_cast<uint32_t>(size));
    Put<uint32_t>(out_, static_cast<uint32_t>(std::min(begin, kMost32)));
    Put<uint16_t>(out_, 0);  // comment
  }

 private:
  uint64_t At() const { return base_ + out_->size(); }

  static void Versions(std::string* out, bool large) { Put<uint16_t>(out, large ? 45 : 0); }

  // Signature and versions precede; the same in both headers.
  static void Common(std::string* out, uint64_t size, uint32_t crc, size_t name) {
    Put<uint16_t>(out, 0x0808);  // names are UTF-8
    Put<uint16_t>(out, 0);       // stored
    Put<uint32_t>(out, 0);       // time
    Put<uint32_t>(out, crc);
    const auto shown = static_cast<uint32_t>(std::min(size, kMost32));
    Put<uint32_t>(out, shown);
    Put<uint32_t>(out, shown);
    Put<uint16_t>(out, static_cast<uint16_t>(name));
  }

  void Header(std::string_view name, uint64_t size, uint32_t crc) {
    ++members_;
    const uint64_t offset = At();
    const bool large = size >= kMost32;
    const std::string full = std::string(stem_).append("/").append(name);
    const size_t fixed = 30 + full.size() + (large ? 20 : 0) + 4;
    const size_t padding = (kAlignment - (offset + fixed) % kAlignment) % kAlignment;
    Put<uint32_t>(out_, 0x04034b50);
    Versions(out_, large);
    Common(out_, size, crc, full.size());
    Put<uint16_t>(out_, static_cast<uint16_t>((large ? 20 : 0) + 4 + padding));
    out_->append(full);
    if (large) {
      Put<uint16_t>(out_, 1);
      Put<uint16_t>(out_, 16);
      Put<uint64_t>(out_, size);
      Put<uint64_t>(out_, size);
    }
    out_->append("FB");
    Put<uint16_t>(out_, static_cast<uint16_t>(padding));
    out_->append(padding, 'Z');

    const bool far = offset >= kMost32;
    Put<uint32_t>(&directory_, 0x02014b50);
    Versions(&directory_, large || far);
    Versions(&directory_, large || far);
    Common(&directory_, size, crc, full.size());
    const int extra = (large ? 16 : 0) + (far ? 8 : 0);
    Put<uint16_t>(&directory_, static_cast<uint16_t>(extra > 0 ? extra + 4 : 0));
    directory_.append(10, '\0');  // comment, disk, attributes
    Put<uint32_t>(&directory_, static_cast<uint32_t>(std::min(offset, kMost32)));
    directory_.append(full);
    if (extra == 0) return;
    Put<uint16_t>(&directory_, 1);
    Put<uint16_t>(&directory_, static_cast<uint16_t>(extra));
    if (large) Put<uint64_t>(&directory_, size), Put<uint64_t>(&directory_, size);
    if (far) Put<uint64_t>(&directory_, offset);
  }

  void End64(uint64_t begin, uint64_t size) {
    const uint64_t at = At();
    Put<uint32_t>(out_, 0x06064b50);
    Put<uint64_t>(out_, 44);
    Versions(out_, true);
    Versions(out_, true);
    Put<uint64_t>(out_, 0);  // numbers of disks
    Put<uint64_t>(out_, members_);
    Put<uint64_t>(out_, members_);
    Put<uint64_t>(out_, size);
    Put<uint64_t>(out_, begin);
    Put<uint32_t>(out_, 0x07064b50);
    Put<uint32_t>(out_, 0);
    Put<uint64_t>(out_, at);
    Put<uint32_t>(out_, 1);
  }

  std::string_view stem_;
  std::string* out_;
  PtFrame* frame_;
  uint64_t base_ = 0;
  uint16_t members_ = 0;
  std::string directory_;
};

Status Refused(const std::string& path) {
  return InternalError(path + " could not be written (" + std::strerror(errno) +
                       "): free some space or choose another dump_path");
}

Status WriteParts(int fd, std::span<iovec> parts, const std::string& path) {
  while (!parts.empty()) {
    const ssize_t n = writev(fd, parts.data(), static_cast<int>(parts.size()));
    if (n < 0) {
      if (errno == EINTR) continue;
      return Refused(path);
    }
    auto left = static_cast<size_t>(n);
    while (!parts.empty() && left >= parts[0].iov_len) {
      left -= parts[0].iov_len;
      parts = parts.subspan(1);
    }
    if (parts.empty()) break;
    parts[0].iov_base = static_cast<char*>(parts[0].iov_base) + left;
    parts[0].iov_len -= left;
  }
  return OkStatus();
}

iovec Part(std::string_view text) { return {const_cast<char*>(text.data()), text.size()}; }

Status WriteElements(int fd, const Layout& layout, const PtFrame& frame, const std::string& path) {
  if (layout.count == 0 || layout.contiguous()) {
    const size_t bytes = static_cast<size_t>(layout.count) * layout.element;
    std::array<iovec, 3> parts = {Part(frame.head), Part({layout.data, bytes}), Part(frame.tail)};
    return WriteParts(fd, parts, path);
  }
  constexpr size_t kBuffer = size_t{1} << 20;
  std::string buffer = frame.head;
  Status status;
  const auto flush = [&] {
    if (!status.ok()) return;
    std::array<iovec, 1> parts = {Part(buffer)};
    status = WriteParts(fd, parts, path);
    buffer.clear();
  };
  LayoutWalker(layout).Walk(0, layout.count, [&](const char* p, size_t n) {
    const size_t bytes = n * layout.element;
    if (buffer.size() + bytes > kBuffer) flush();
    if (bytes < kBuffer) return (void)buffer.append(p, bytes);
    std::array<iovec, 1> parts = {Part({p, bytes})};
    if (status.ok()) status = WriteParts(fd, parts, path);
  });
  buffer.append(frame.tail);
  flush();
  return status;
}

std::string_view Stem(std::string_view path) {
  const std::string_view name = BaseName(path);
  return name.substr(0, name.rfind('.'));
}

}  // namespace

bool MakePtFrame(DType dtype, std::span<const int64_t> shape, std::string_view stem, uint32_t crc, PtFrame* out) {
  Layout layout;
  const TensorView view{nullptr, dtype, static_cast<int>(shape.size()), shape.data(), nullptr};
  uint64_t bytes = 0;
  if (shape.size() > kMaxDims || !MakeLayout(view, Order::kLogical, &layout) ||
      __builtin_mul_overflow(static_cast<uint64_t>(layout.count), layout.element, &bytes)) {
    return false;
  }
  out->head.clear();
  out->tail.clear();
  Archive archive(stem, out);
  archive.Member("data.pkl", Pickle(dtype, shape, static_cast<uint64_t>(layout.count)));
  archive.Member(".format_version", "1");
  archive.Member(".storage_alignment", "64");
  archive.Member("byteorder", "little");
  archive.LargeMember("data/0", bytes, crc);
  archive.Member("version", "3\n");
  archive.Member(".data/serialization_id", "0000000000000000000000000000000000000000");
  archive.End();
  return true;
}

Status WritePtFile(const std::string& path, const TensorView& t, uint64_t* bytes) {
  Layout layout;
  PtFrame frame;
  if (!MakeLayout(t, Order::kLogical, &layout) ||
      !MakePtFrame(t.dtype, {t.shape, static_cast<size_t>(t.ndim)}, Stem(path), ComputeCrc32(t), &frame)) {
    return InternalError(path + " cannot be written: its tensor has no known dtype or too many dimensions");
  }
  TempPath temp(path);
  const int fd = open(temp.path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode);
  if (fd < 0) return Refused(path);
  const Status written = WriteElements(fd, layout, frame, path);
  if (close(fd) != 0 && written.ok()) return Refused(path);  // a file server may tell only now
  MSP_RETURN_IF_ERROR(written);
  *bytes += frame.head.size() + frame.tail.size() + static_cast<uint64_t>(layout.count) * layout.element;
  return temp.Commit();
}

}  // namespace msprobe
