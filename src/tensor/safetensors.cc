#include "tensor/safetensors.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <unordered_set>

#include "base/file.h"
#include "base/text.h"
#include "tensor/layout.h"

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

/// The header: an object of objects, nested no deeper than that.
class HeaderJson {
 public:
  explicit HeaderJson(std::string_view text) : rest_(text) {}

  /// Why it is refused, or "".
  std::string Read(std::vector<Entry>* out) {
    if (!Object([&](const std::string& name) { return name == "__metadata__" ? Metadata() : Tensor(name, out); }))
      return Why();
    Space();
    if (!rest_.empty()) return "text follows the header";
    return {};
  }

 private:
  std::string Why() const { return why_.empty() ? "the header is damaged" : why_; }
  bool Fail(std::string why) {
    if (why_.empty()) why_ = std::move(why);
    return false;
  }
  void Space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n' || rest_[0] == '\r' || rest_[0] == '\t'))
      rest_.remove_prefix(1);
  }
  bool Take(char c) {
    Space();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  /// value(key) reads the value of each key; no key comes twice.
  template <typename Value>
  bool Object(const Value& value) {
    if (!Take('{')) return false;
    if (Take('}')) return true;
    std::unordered_set<std::string> keys;
    do {
      std::string key;
      if (!Text(&key) || !Take(':')) return false;
      if (keys.size() >= kMostNames) return Fail("it holds too many tensors");
      if (!keys.insert(key).second) return Fail("the name " + OneLine(key.substr(0, 100)) + " comes twice");
      if (!value(key)) return false;
    } while (Take(','));
    return Take('}');
  }
  template <typename Value>
  bool Array(const Value& value) {
    if (!Take('[')) return false;
    if (Take(']')) return true;
    do {
      if (!value()) return false;
    } while (Take(','));
    return Take(']');
  }
  bool Number(uint64_t* out) {
    Space();
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), *out);
    if (error != std::errc()) return Fail("a size or an offset is no whole number");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return true;
  }
  bool Text(std::string* out);
  bool Hex(uint32_t* out);
  bool Escape(std::string* out);

  bool Metadata() {
    return Object([&](const std::string&) {
      std::string value;
      return Text(&value);
    });
  }
  bool Shape(std::vector<int64_t>* shape) {
    return Array([&] {
      uint64_t n = 0;
      if (!Number(&n)) return false;
      if (n > static_cast<uint64_t>(INT64_MAX) || shape->size() >= kMaxDims) return Fail("a shape is too large");
      shape->push_back(static_cast<int64_t>(n));
      return true;
    });
  }
  bool Type(DType* out) {
    std::string name;
    if (!Text(&name)) return false;
    for (const NamedType& type : kTypes) *out = type.name == name ? type.dtype : *out;
    return *out != DType::kUnknown || Fail("the type " + OneLine(name.substr(0, 40)) + " is not read");
  }
  bool Tensor(const std::string& name, std::vector<Entry>* out) {
    Entry entry;
    entry.tensor.name = name;
    int offsets = 0;
    bool shape = false;
    const bool read = Object([&](const std::string& key) {
      if (key == "dtype") return Type(&entry.tensor.dtype);
      if (key == "shape") return shape = Shape(&entry.tensor.shape);
      if (key != "data_offsets") return Fail("the header has a key that the format does not know");
      return Array([&] { return ++offsets <= 2 && Number(offsets == 1 ? &entry.begin : &entry.end); });
    });
    if (!read) return false;
    if (!shape || offsets != 2 || entry.tensor.dtype == DType::kUnknown) return Fail("a tensor lacks its description");
    out->push_back(std::move(entry));
    return true;
  }

  std::string_view rest_;
  std::string why_;
};

void AppendUtf8(uint32_t cp, std::string* out) {
  const auto add = [&](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (cp < 0x80) return add(cp);
  if (cp < 0x800) {
    add(0xC0 | cp >> 6);
  } else if (cp < 0x10000) {
    add(0xE0 | cp >> 12);
    add(0x80 | (cp >> 6 & 63));
  } else {
    add(0xF0 | cp >> 18);
    add(0x80 | (cp >> 12 & 63));
    add(0x80 | (cp >> 6 & 63));
  }
  add(0x80 | (cp & 63));
}

bool HeaderJson::Hex(uint32_t* out) {
  if (rest_.size() < 4) return false;
  const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + 4, *out, 16);
  if (error != std::errc() || end != rest_.data() + 4) return false;
  rest_.remove_prefix(4);
  return true;
}

bool HeaderJson::Escape(std::string* out) {
  if (rest_.empty()) return false;
  const char c = rest_[0];
  rest_.remove_prefix(1);
  constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
  if (const size_t at = kFrom.find(c); at != std::string_view::npos) return out->push_back(kTo[at]), true;
  uint32_t cp = 0, low = 0;
  if (c != 'u' || !Hex(&cp)) return false;
  if (cp >= 0xD800 && cp < 0xDC00) {
    if (!rest_.starts_with("\\u")) return false;
    rest_.remove_prefix(2);
    if (!Hex(&low) || low < 0xDC00 || low > 0xDFFF) return false;
    cp = 0x10000 + ((cp - 0xD800) << 10) + (low - 0xDC00);
  } else if (cp >= 0xDC00 && cp < 0xE000) {
    return false;
  }
  AppendUtf8(cp, out);
  return true;
}

bool HeaderJson::Text(std::string* out) {
  if (!Take('"')) return false;
  for (;;) {
    const size_t plain = std::min(rest_.find_first_of("\"\\"), rest_.size());
    out->append(rest_.substr(0, plain));
    rest_.remove_prefix(plain);
    if (rest_.empty()) return false;
    const bool end = rest_[0] == '"';
    rest_.remove_prefix(1);
    if (end) return IsUtf8(*out);
    if (!Escape(out)) return false;
  }
}

/// Why the tensors do not fill `data` one behind the other, or "". Sets where they lie.
std::string Place(std::string_view data, std::vector<Entry>* entries) {
  std::vector<Entry*> in_order;
  for (Entry& e : *entries) in_order.push_back(&e);
  std::sort(in_order.begin(), in_order.end(), [](const Entry* a, const Entry* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  uint64_t at = 0;
  for (Entry* e : in_order) {
    const std::string name = OneLine(e->tensor.name.substr(0, 100));
    if (e->begin < at) return "the bytes of " + name + " overlap those of another tensor";
    if (e->begin > at) return "bytes before " + name + " belong to no tensor";
    if (e->end < e->begin || e->end > data.size()) return "the bytes of " + name + " lie outside of the file";
    uint64_t bytes = 0;
    if (!SetContiguous(&e->tensor, data.size(), &bytes) || bytes != e->end - e->begin)
      return "the shape of " + name + " does not fit its bytes";
    e->tensor.data = data.data() + e->begin;
    at = e->end;
  }
  return at == data.size() ? "" : "bytes behind the last tensor belong to no tensor";
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
  if (!MakeLayout(view, Order::kLogical, &layout)) return BadInput(file->path() + ": a tensor cannot be written");
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
  const auto refuse = [&](const std::string& why) {
    return BadInput(path + " cannot be read: " + why + " (safetensors); write the file again");
  };
  if (bytes.size() < kLength) return refuse("it ends in its header");
  const uint64_t length = HeaderLength(bytes);
  if (length > kMostHeader) return refuse("its header is larger than 100 MB");
  if (length > bytes.size() - kLength) return refuse("it ends in its header");
  std::vector<Entry> entries;
  if (std::string why = HeaderJson(bytes.substr(kLength, length)).Read(&entries); !why.empty()) return refuse(why);
  if (std::string why = Place(bytes.substr(kLength + length), &entries); !why.empty()) return refuse(why);
  std::vector<FileTensor> tensors;
  tensors.reserve(entries.size());
  for (Entry& e : entries) tensors.push_back(std::move(e.tensor));
  return tensors;
}

Status WriteSafetensors(const std::string& path, const std::vector<NamedTensor>& tensors) {
  // Wide elements first, so that every tensor begins at a multiple of its elements; then by name.
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& t : tensors) order.push_back(&t);
  std::sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    const size_t left = ElementSize(a->view.dtype), right = ElementSize(b->view.dtype);
    return left != right ? left > right : a->name < b->name;
  });
  std::string header = R"({"__metadata__":{"format":"pt"})";
  std::unordered_set<std::string> names = {"__metadata__"};
  uint64_t at = 0;
  for (const NamedTensor* t : order) {
    const std::string_view type = TypeName(t->view.dtype);
    const std::string shown = OneLine(t->name.substr(0, 100));
    Layout layout;
    if (type.empty() || !MakeLayout(t->view, Order::kLogical, &layout)) {
      return BadInput(path + ": safetensors does not know the type of " + shown + ": convert it first");
    }
    if (!names.insert(t->name).second) return BadInput(path + ": the name " + shown + " comes twice: rename a tensor");
    header += ',';
    AppendJsonString(header, t->name);
    header.append(R"(:{"dtype":")").append(type).append(R"(","shape":[)");
    for (int d = 0; d < t->view.ndim; ++d) {
      if (d > 0) header += ',';
      AppendInt(header, t->view.shape[d]);
    }
    const uint64_t bytes = static_cast<uint64_t>(layout.count) * layout.element;
    header.append("],\"data_offsets\":[").append(std::to_string(at)).append(",");
    header.append(std::to_string(at + bytes)).append("]}");
    at += bytes;
  }
  header += '}';
  header.append((kLength - header.size() % kLength) % kLength, ' ');
  if (header.size() > kMostHeader) return BadInput(path + ": the names of the tensors are too long: write fewer");

  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  const uint64_t length = header.size();
  MSP_RETURN_IF_ERROR(file.Write({reinterpret_cast<const char*>(&length), kLength}));
  MSP_RETURN_IF_ERROR(file.Write(header));
  for (const NamedTensor* t : order) MSP_RETURN_IF_ERROR(WriteElements(t->view, &file));
  return file.Commit();
}

}  // namespace msprobe
