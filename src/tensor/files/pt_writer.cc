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
#include "base/message.h"
#include "tensor/files/pt_archive.h"
#include "tensor/kernels/crc32.h"
#include "tensor/kernels/layout.h"

namespace msprobe {
namespace {

Status Refused(const std::string& path) {
  return InternalError(Msg("{} could not be written ({}): free some space or choose another dump_path", path,
                           KnownText(std::strerror(errno))));
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
  PtArchive archive{std::string(stem)};
  std::string pickle = "\x80\x02";
  AppendPickledTensor({dtype, shape, static_cast<uint64_t>(layout.count), "0"}, &pickle);
  out->head = archive.Start(pickle + ".");
  out->head += archive.Before("data/0", bytes, crc);
  out->tail = archive.Finish();
  return true;
}

Status WritePtFile(const std::string& path, const TensorView& t, uint64_t* bytes) {
  Layout layout;
  PtFrame frame;
  if (!MakeLayout(t, Order::kLogical, &layout) ||
      !MakePtFrame(t.dtype, {t.shape, static_cast<size_t>(t.ndim)}, Stem(path), ComputeCrc32(t), &frame)) {
    return InternalError(Msg("{} cannot be written: its tensor has no known dtype or too many dimensions", path));
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
