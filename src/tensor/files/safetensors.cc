#include "tensor/files/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_set>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "json/members.h"
#include "json/parser.h"
#include "json/scan.h"
#include "json/writer.h"
#include "tensor/files/tensor_reader.h"
#include "tensor/kernels/layout.h"

namespace msprobe {
namespace {

constexpr size_t kLength = 8;
constexpr uint64_t kMostHeader = 100'000'000;
constexpr size_t kMostNames = size_t{1} << 19;

struct NamedType {
  std::string_view name;
  DType dtype;
};
constexpr NamedType kTypes[] = {
    {"F64", DType::kFloat64},
    {"F32", DType::kFloat32},
    {"F16", DType::kFloat16},
    {"BF16", DType::kBFloat16},
    {"F8_E4M3", DType::kFloat8E4M3FN},
    {"F8_E5M2", DType::kFloat8E5M2},
    {"F8_E4M3FNUZ", DType::kFloat8E4M3FNUZ},
    {"F8_E5M2FNUZ", DType::kFloat8E5M2FNUZ},
    {"F8_E8M0", DType::kFloat8E8M0FNU},
    {"I64", DType::kInt64},
    {"I32", DType::kInt32},
    {"I16", DType::kInt16},
    {"I8", DType::kInt8},
    {"U64", DType::kUInt64},
    {"U32", DType::kUInt32},
    {"U16", DType::kUInt16},
    {"U8", DType::kUInt8},
    {"BOOL", DType::kBool},
    {"C64", DType::kComplex64},
};

struct Entry {
  FileTensor tensor;
  uint64_t begin = 0, end = 0;
};

constexpr const char* kDamaged = "the header is damaged";
constexpr const char* kNotWhole = "a size or an offset is not a whole number";
constexpr size_t kMostDescription = size_t{64} << 10;

Message Twice(std::string_view name) { return Msg("the name {} comes twice", OneLine(name.substr(0, 100))); }

Message ReadShape(const JsonValue& v, std::vector<int64_t>* shape) {
  if (!v.IsArray()) return KnownText(kDamaged);
  for (const JsonValue& size : v.Items()) {
    if (!size.IsUInt()) return KnownText(kNotWhole);
    if (!size.IsInt() || shape->size() >= kMaxDims) return Msg("a shape is too large");
    shape->push_back(size.Int());
  }
  return {};
}

Message ReadType(const JsonValue& v, DType* out) {
  if (!v.IsString()) return KnownText(kDamaged);
  for (const NamedType& type : kTypes) *out = type.name == v.Text() ? type.dtype : *out;
  if (*out == DType::kUnknown) return Msg("the type {} is not read", OneLine(v.Text().substr(0, 40)));
  return {};
}

Message ReadOffsets(const JsonValue& v, Entry* entry) {
  if (v.Items().size() != 2) return KnownText(kDamaged);
  if (!v[0].IsUInt() || !v[1].IsUInt()) return KnownText(kNotWhole);
  entry->begin = v[0].UInt();
  entry->end = v[1].UInt();
  return {};
}

/// Why the description of a tensor is refused, or "".
Message ReadEntry(const JsonValue& v, Entry* entry) {
  if (!v.IsObject()) return KnownText(kDamaged);
  for (const JsonMember& m : v.Members()) {
    Message why;
    if (v.Find(m.name) != &m.value) {
      why = Twice(m.name);
    } else if (m.name == "dtype") {
      why = ReadType(m.value, &entry->tensor.dtype);
    } else if (m.name == "shape") {
      why = ReadShape(m.value, &entry->tensor.shape);
    } else if (m.name == "data_offsets") {
      why = ReadOffsets(m.value, entry);
    } else {
      why = Msg("the header has a key that the format does not know");
    }
    if (!why.empty()) return why;
  }
  return v.size() == 3 ? Message() : Msg("a tensor lacks its description");
}

/// Texts by name; nothing of them is kept.
bool IsMetadata(std::string_view text) {
  if (!text.starts_with('{')) return false;
  MemberScanner scanner(text, 1);
  Member m;
  for (;;) {
    const MemberScanner::Step step = scanner.Next(&m);
    if (step != MemberScanner::Step::kMember) return step == MemberScanner::Step::kEnd;
    if (text[m.begin] != '"') return false;
  }
}

/// The header, an object of objects, one tensor at a time: little memory, whatever it holds. Why it is refused, or "".
Message ReadHeader(std::string_view text, std::vector<Entry>* out) {
  const JsonOptions strict{.strict = true};
  const size_t start = SkipSpace(text, 0);
  if (start == text.size() || text[start] != '{') return KnownText(kDamaged);
  MemberScanner scanner(text, start + 1);
  std::unordered_set<std::string> names;
  JsonDoc doc;
  Member m;
  for (;;) {
    const MemberScanner::Step step = scanner.Next(&m);
    if (step == MemberScanner::Step::kEnd) break;
    if (step != MemberScanner::Step::kMember) return KnownText(kDamaged);
    const std::string_view quoted(m.key.data() - 1, m.key.size() + 2);
    if (!ParseJson(quoted, "", &doc, 0, strict).ok()) return KnownText(kDamaged);
    if (names.size() >= kMostNames) return Msg("it holds too many tensors");
    const auto [name, fresh] = names.emplace(doc.Text());
    if (!fresh) return Twice(*name);
    const std::string_view value = text.substr(m.begin, m.end - m.begin);
    if (*name == "__metadata__") {
      if (!IsMetadata(value)) return KnownText(kDamaged);
      continue;
    }
    if (value.size() > kMostDescription || !ParseJson(value, "", &doc, 0, strict).ok()) return KnownText(kDamaged);
    Entry entry;
    entry.tensor.name = *name;
    if (Message why = ReadEntry(doc, &entry); !why.empty()) return why;
    out->push_back(std::move(entry));
  }
  return SkipSpace(text, scanner.position()) == text.size() ? Message() : Msg("text follows the header");
}

/// Why the tensors do not fill `data` one behind the other, or "". Sets where they lie.
Message Place(std::string_view data, std::vector<Entry>* entries) {
  std::vector<Entry*> in_order;
  for (Entry& e : *entries) in_order.push_back(&e);
  std::sort(in_order.begin(), in_order.end(), [](const Entry* a, const Entry* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  uint64_t at = 0;
  for (Entry* e : in_order) {
    const std::string name = OneLine(e->tensor.name.substr(0, 100));
    if (e->begin < at) return Msg("the bytes of {} overlap those of another tensor", name);
    if (e->begin > at) return Msg("bytes before {} belong to no tensor", name);
    if (e->end < e->begin || e->end > data.size()) return Msg("the bytes of {} lie outside of the file", name);
    uint64_t bytes = 0;
    if (!SetContiguous(&e->tensor, data.size(), &bytes) || bytes != e->end - e->begin)
      return Msg("the shape of {} does not fit its bytes", name);
    e->tensor.data = data.data() + e->begin;
    at = e->end;
  }
  return at == data.size() ? Message() : Msg("bytes behind the last tensor belong to no tensor");
}

uint64_t HeaderLength(std::string_view bytes) {
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLength);
  return length;
}

std::string_view TypeName(DType t) {
  for (const NamedType& type : kTypes) {
    if (type.dtype == t) return type.name;
  }
  return {};
}

Status WriteElements(const TensorView& view, OutputFile* file) {
  Layout layout;
  if (!MakeLayout(view, Order::kLogical, &layout)) return BadInput(Msg("{}: a tensor cannot be written", file->path()));
  Status status;
  if (layout.count == 0) return status;
  LayoutWalker(layout).Walk(0, layout.count, [&](const char* p, size_t n) {
    if (status.ok()) status = file->Write({p, n * layout.element});
  });
  return status;
}

}  // namespace

bool LooksLikeSafetensors(std::string_view bytes) { return bytes.size() > kLength && bytes[kLength] == '{'; }

StatusOr<std::vector<FileTensor>> ReadSafetensors(std::string_view bytes, const std::string& path) {
  const auto refuse = [&](const Message& why) {
    return BadInput(Msg("{} cannot be read: {} (safetensors); write the file again", path, why));
  };
  if (bytes.size() < kLength) return refuse(Msg("it ends in its header"));
  const uint64_t length = HeaderLength(bytes);
  if (length > kMostHeader) return refuse(Msg("its header is larger than 100 MB"));
  if (length > bytes.size() - kLength) return refuse(Msg("it ends in its header"));
  std::vector<Entry> entries;
  if (Message why = ReadHeader(bytes.substr(kLength, length), &entries); !why.empty()) return refuse(why);
  if (Message why = Place(bytes.substr(kLength + length), &entries); !why.empty()) return refuse(why);
  std::vector<FileTensor> tensors;
  tensors.reserve(entries.size());
  for (Entry& e : entries) tensors.push_back(std::move(e.tensor));
  return tensors;
}

StatusOr<std::string> SafetensorsHead(const std::string& path, const std::vector<TensorHeading>& tensors,
                                      std::vector<size_t>* order) {
  // Wide elements first, so that every tensor begins at a multiple of its elements; then by name.
  order->resize(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) (*order)[i] = i;
  std::sort(order->begin(), order->end(), [&](size_t a, size_t b) {
    const size_t left = ElementSize(tensors[a].dtype), right = ElementSize(tensors[b].dtype);
    return left != right ? left > right : tensors[a].name < tensors[b].name;
  });
  std::string header;
  JsonWriter json(&header, kJsonCompact);
  json.BeginObject();
  json.ObjectMember("__metadata__", [&] { json.Member("format", "pt"); });
  std::unordered_set<std::string> names = {"__metadata__"};
  uint64_t at = 0;
  for (const size_t i : *order) {
    const TensorHeading& t = tensors[i];
    const std::string_view type = TypeName(t.dtype);
    const std::string shown = OneLine(t.name.substr(0, 100));
    Layout layout;
    const TensorView view{nullptr, t.dtype, static_cast<int>(t.shape.size()), t.shape.data(), nullptr};
    if (type.empty() || !MakeLayout(view, Order::kLogical, &layout)) {
      return BadInput(Msg("{}: safetensors does not know the type of {}: convert it first", path, shown));
    }
    if (!names.insert(t.name).second) return BadInput(Msg("{}: the name {} comes twice: rename a tensor", path, shown));
    const uint64_t begin = at;
    at += static_cast<uint64_t>(layout.count) * layout.element;
    json.ObjectMember(t.name, [&] {
      json.Member("dtype", type);
      json.Member("shape", t.shape);
      json.Member("data_offsets", std::array{begin, at});
    });
  }
  json.EndObject();
  header.append((kLength - header.size() % kLength) % kLength, ' ');
  if (header.size() > kMostHeader) return BadInput(Msg("{}: the names of the tensors are too long: write fewer", path));
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), kLength) + header;
}

Status WriteSafetensors(const std::string& path, const std::vector<NamedTensor>& tensors) {
  std::vector<TensorHeading> labels;
  for (const NamedTensor& t : tensors) {
    labels.push_back({t.name, t.view.dtype, {t.view.shape, t.view.shape + t.view.ndim}});
  }
  std::vector<size_t> order;
  MSP_ASSIGN_OR_RETURN(const std::string head, SafetensorsHead(path, labels, &order));
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(head));
  for (const size_t i : order) MSP_RETURN_IF_ERROR(WriteElements(tensors[i].view, &file));
  return file.Commit();
}

constinit const TensorReader kSafetensorsReader{
    LooksLikeSafetensors,
    [](std::string_view bytes, const std::string& path, DType) { return ReadSafetensors(bytes, path); }};

}  // namespace msprobe
