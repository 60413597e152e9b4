#include "tensor/files/npy_reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/message.h"
#include "base/text.h"
#include "tensor/files/tensor_reader.h"

namespace msprobe {
namespace {

constexpr size_t kMagic = 6, kMostHeader = size_t{1} << 20;

struct Header {
  std::string_view descr;
  bool fortran = false;
  std::vector<int64_t> shape;
};

/// The header is a dict as Python writes it, of three keys.
class HeaderText {
 public:
  explicit HeaderText(std::string_view text) : rest_(text) {}

  bool Read(Header* out) {
    bool descr = false, order = false, shape = false;
    if (!Take('{')) return false;
    while (!Take('}')) {
      std::string_view key;
      if (!Quoted(&key) || !Take(':')) return false;
      bool* seen = key == "descr" ? &descr : key == "fortran_order" ? &order : key == "shape" ? &shape : nullptr;
      if (seen == nullptr || *seen) return false;
      *seen = true;
      if (seen == &descr ? !Descr(&out->descr) : seen == &order ? !Bool(&out->fortran) : !Shape(&out->shape))
        return false;
      if (!Take(',') && !Peek('}')) return false;
    }
    Space();
    return rest_.empty() && descr && order && shape;
  }

 private:
  void Space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  bool Peek(char c) { return Space(), rest_.starts_with(c); }
  bool Take(char c) {
    if (!Peek(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool Quoted(std::string_view* out) {
    Space();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return false;
    const size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) return false;
    *out = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return true;
  }
  bool Descr(std::string_view* out) {
    if (!Peek('[')) return Quoted(out);
    *out = "[";  // a record; which one does not matter
    const size_t end = rest_.rfind(']');
    if (end == std::string_view::npos) return false;
    rest_.remove_prefix(end + 1);
    return true;
  }
  bool Bool(bool* out) {
    Space();
    for (const std::string_view word : {std::string_view("False"), std::string_view("True")}) {
      if (!rest_.starts_with(word)) continue;
      *out = word == "True";
      rest_.remove_prefix(word.size());
      return true;
    }
    return false;
  }
  bool Shape(std::vector<int64_t>* out) {
    if (!Take('(')) return false;
    while (!Take(')')) {
      Space();
      int64_t n = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), n);
      if (error != std::errc() || n < 0 || out->size() >= kMaxDims) return false;
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      if (rest_.starts_with('L')) rest_.remove_prefix(1);  // as Python 2 wrote them
      out->push_back(n);
      if (!Take(',') && !Peek(')')) return false;
    }
    return true;
  }

  std::string_view rest_;
};

struct NamedType {
  std::string_view name;
  DType dtype;
};
constexpr NamedType kTypes[] = {
    {"f2", DType::kFloat16},   {"f4", DType::kFloat32},     {"f8", DType::kFloat64},        {"i1", DType::kInt8},
    {"i2", DType::kInt16},     {"i4", DType::kInt32},       {"i8", DType::kInt64},          {"u1", DType::kUInt8},
    {"u2", DType::kUInt16},    {"u4", DType::kUInt32},      {"u8", DType::kUInt64},         {"b1", DType::kBool},
    {"c8", DType::kComplex64}, {"c16", DType::kComplex128}, {"bfloat16", DType::kBFloat16},
};

/// Why the type is refused, or "".
Message TypeOf(std::string_view descr, DType expected, DType* out) {
  const std::string shown = OneLine(descr.substr(0, 40));
  if (descr == "[") return Msg("it holds records: save an array of numbers");
  std::string_view name = descr;
  const char order = name.empty() ? '\0' : name[0];
  if (order == '<' || order == '>' || order == '|' || order == '=') name.remove_prefix(1);
  if (name.starts_with('O')) return Msg("it holds Python objects, which are not read: save an array of numbers");
  if (name == "V1" || name == "V2") {
    const size_t size = static_cast<size_t>(name[1] - '0');
    *out = ElementSize(expected) == size ? expected : size == 2 ? DType::kBFloat16 : DType::kUnknown;
    if (*out != DType::kUnknown) return {};
    return Msg("its elements are bytes of a type that numpy does not name: save it as float32");
  }
  for (const NamedType& type : kTypes) {
    if (type.name != name) continue;
    if (order == '>' && ElementSize(type.dtype) > 1)
      return Msg("its numbers are big-endian: save it again with array.astype(array.dtype.newbyteorder('<'))");
    *out = type.dtype;
    return {};
  }
  return Msg("its type {} is not read: save an array of numbers", shown);
}

}  // namespace

StatusOr<FileTensor> ReadNpy(std::string_view bytes, const std::string& path, DType dtype) {
  const auto refuse = [&](const Message& why) { return BadInput(Msg("{} cannot be read: {}", path, why)); };
  const Message broken = Msg("the header of the .npy file is damaged: save it again with numpy.save()");
  if (bytes.size() < kMagic + 4) return refuse(broken);
  const auto version = static_cast<unsigned char>(bytes[kMagic]);
  if (version < 1 || version > 3)
    return refuse(Msg("the version of the .npy format is unknown: save it with numpy.save()"));
  const size_t length_bytes = version == 1 ? 2 : 4, begin = kMagic + 2 + length_bytes;
  if (bytes.size() < begin) return refuse(broken);
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + kMagic + 2, length_bytes);
  if (length > kMostHeader || length > bytes.size() - begin) return refuse(broken);
  Header header;
  if (!HeaderText(bytes.substr(begin, length)).Read(&header)) return refuse(broken);

  FileTensor tensor;
  tensor.shape = std::move(header.shape);
  const Message why = TypeOf(header.descr, dtype, &tensor.dtype);
  if (!why.empty()) return refuse(why);
  const std::string_view data = bytes.substr(begin + length);
  uint64_t size = 0;
  if (!SetContiguous(&tensor, data.size(), &size)) return refuse(Msg("its shape needs more bytes than the file has"));
  if (size != data.size()) return refuse(Msg("bytes follow its last element: save it again with numpy.save()"));
  if (header.fortran) {
    int64_t step = 1;
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      tensor.strides[d] = step;
      step *= std::max<int64_t>(tensor.shape[d], 1);
    }
  }
  tensor.data = data.data();
  return tensor;
}

constinit const TensorReader kNpyReader{
    [](std::string_view bytes) { return bytes.starts_with("\x93NUMPY"); },
    [](std::string_view bytes, const std::string& path, DType dtype) -> StatusOr<std::vector<FileTensor>> {
      MSP_ASSIGN_OR_RETURN(FileTensor tensor, ReadNpy(bytes, path, dtype));
      return std::vector<FileTensor>{std::move(tensor)};
    }};

}  // namespace msprobe
