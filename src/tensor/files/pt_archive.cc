#include "tensor/files/pt_archive.h"

#include <algorithm>
#include <array>
#include <vector>

#include "tensor/kernels/crc32.h"

namespace msprobe {
namespace {

constexpr uint64_t kMost32 = 0xffffffffu, kMost16 = 0xffffu;
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

void PickleTuple(std::string* out, std::span<const int64_t> values) {
  if (values.empty()) return out->push_back(')');
  if (values.size() > 3) out->push_back('(');
  for (int64_t v : values) PickleInt(out, static_cast<uint64_t>(v));
  constexpr std::array<char, 4> kShort = {')', '\x85', '\x86', '\x87'};
  out->push_back(values.size() > 3 ? 't' : kShort[values.size()]);
}

void Versions(std::string* out, bool large) { Put<uint16_t>(out, large ? 45 : 0); }

// Signature and versions precede; the same in both headers.
void Common(std::string* out, uint64_t size, uint32_t crc, size_t name) {
  Put<uint16_t>(out, 0x0808);  // names are UTF-8
  Put<uint16_t>(out, 0);       // stored
  Put<uint32_t>(out, 0);       // time
  Put<uint32_t>(out, crc);
  const auto shown = static_cast<uint32_t>(std::min(size, kMost32));
  Put<uint32_t>(out, shown);
  Put<uint32_t>(out, shown);
  Put<uint16_t>(out, static_cast<uint16_t>(name));
}

void PutEnd64(std::string* out, uint64_t members, uint64_t begin, uint64_t size) {
  Put<uint32_t>(out, 0x06064b50);
  Put<uint64_t>(out, 44);
  Versions(out, true);
  Versions(out, true);
  Put<uint64_t>(out, 0);  // numbers of disks
  Put<uint64_t>(out, members);
  Put<uint64_t>(out, members);
  Put<uint64_t>(out, size);
  Put<uint64_t>(out, begin);
  Put<uint32_t>(out, 0x07064b50);
  Put<uint32_t>(out, 0);
  Put<uint64_t>(out, begin + size);
  Put<uint32_t>(out, 1);
}

}  // namespace

void AppendPickledText(std::string_view text, std::string* out) {
  out->push_back('X');
  Put(out, static_cast<uint32_t>(text.size()));
  out->append(text);
}

// _rebuild_tensor_v2(storage, 0, shape, strides, requires_grad=False, OrderedDict()), or _v3 with the dtype behind it.
void AppendPickledTensor(const PickledTensor& tensor, std::string* out) {
  const char* storage = StorageClass(tensor.dtype);
  out->append("ctorch._utils\n_rebuild_tensor_v").append(storage ? "2\n((" : "3\n((");
  AppendPickledText("storage", out);
  storage ? out->append("ctorch\n").append(storage) : out->append("ctorch.storage\nUntypedStorage");
  out->push_back('\n');
  AppendPickledText(tensor.key, out);
  AppendPickledText("cpu", out);
  PickleInt(out, storage ? tensor.count : tensor.count * ElementSize(tensor.dtype));
  out->append("tQ");
  PickleInt(out, 0);
  std::vector<int64_t> strides(tensor.shape.size());
  int64_t stride = 1;
  for (size_t i = tensor.shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(tensor.shape[i], 1);
  }
  PickleTuple(out, tensor.shape);
  PickleTuple(out, strides);
  out->append(
      "\x89"
      "ccollections\nOrderedDict\n)R");
  if (!storage) out->append("ctorch\n").append(DTypeName(tensor.dtype)).push_back('\n');
  out->append("tR");
}

std::string PtArchive::Start(std::string_view pickle) {
  std::string out = Member("data.pkl", pickle);
  out += Member(".format_version", "1");
  out += Member(".storage_alignment", "64");
  return out += Member("byteorder", "little");
}

std::string PtArchive::Member(std::string_view name, std::string_view text) {
  return Before(name, text.size(), Crc32(text.data(), text.size())).append(text);
}

std::string PtArchive::Before(std::string_view name, uint64_t size, std::optional<uint32_t> crc) {
  const Open member{std::string(stem_).append("/").append(name), at_, size};
  const bool large = size >= kMost32;
  const size_t fixed = 30 + member.name.size() + (large ? 20 : 0) + 4;
  const size_t padding = (kAlignment - (at_ + fixed) % kAlignment) % kAlignment;
  std::string out;
  Put<uint32_t>(&out, 0x04034b50);
  Versions(&out, large);
  Common(&out, size, crc.value_or(0), member.name.size());
  Put<uint16_t>(&out, static_cast<uint16_t>((large ? 20 : 0) + 4 + padding));
  out.append(member.name);
  if (large) {
    Put<uint16_t>(&out, 1);
    Put<uint16_t>(&out, 16);
    Put<uint64_t>(&out, size);
    Put<uint64_t>(&out, size);
  }
  out.append("FB");
  Put<uint16_t>(&out, static_cast<uint16_t>(padding));
  out.append(padding, 'Z');
  at_ += out.size() + size;
  crc ? List(member, *crc) : (void)(open_ = member);
  return out;
}

std::string PtArchive::Behind(uint32_t crc) {
  std::string out;
  Put<uint32_t>(&out, 0x08074b50);
  Put<uint32_t>(&out, crc);
  const uint64_t size = open_->size;
  for (int i = 0; i < 2; ++i)
    size >= kMost32 ? Put<uint64_t>(&out, size) : Put<uint32_t>(&out, static_cast<uint32_t>(size));
  List(*open_, crc);
  at_ += out.size();
  return out;
}

void PtArchive::List(const Open& member, uint32_t crc) {
  ++members_;
  const bool large = member.size >= kMost32, far = member.offset >= kMost32;
  Put<uint32_t>(&directory_, 0x02014b50);
  Versions(&directory_, large || far);
  Versions(&directory_, large || far);
  Common(&directory_, member.size, crc, member.name.size());
  const int extra = (large ? 16 : 0) + (far ? 8 : 0);
  Put<uint16_t>(&directory_, static_cast<uint16_t>(extra > 0 ? extra + 4 : 0));
  directory_.append(10, '\0');  // comment, disk, attributes
  Put<uint32_t>(&directory_, static_cast<uint32_t>(std::min(member.offset, kMost32)));
  directory_.append(member.name);
  if (extra == 0) return;
  Put<uint16_t>(&directory_, 1);
  Put<uint16_t>(&directory_, static_cast<uint16_t>(extra));
  if (large) Put<uint64_t>(&directory_, member.size), Put<uint64_t>(&directory_, member.size);
  if (far) Put<uint64_t>(&directory_, member.offset);
}

std::string PtArchive::Finish() {
  std::string out = Member("version", "3\n");
  out += Member(".data/serialization_id", "0000000000000000000000000000000000000000");
  const uint64_t begin = at_, size = directory_.size();
  out.append(directory_);
  if (begin >= kMost32 || members_ >= kMost16) PutEnd64(&out, members_, begin, size);
  Put<uint32_t>(&out, 0x06054b50);
  Put<uint32_t>(&out, 0);  // numbers of disks
  Put<uint16_t>(&out, static_cast<uint16_t>(std::min(members_, kMost16)));
  Put<uint16_t>(&out, static_cast<uint16_t>(std::min(members_, kMost16)));
  Put<uint32_t>(&out, static_cast<uint32_t>(std::min(size, kMost32)));
  Put<uint32_t>(&out, static_cast<uint32_t>(std::min(begin, kMost32)));
  Put<uint16_t>(&out, 0);  // comment
  return out;
}

}  // namespace msprobe
