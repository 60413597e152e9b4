#include "capture/format.h"

#include <cstdio>

#include "json/writer.h"

namespace msprobe {
namespace {

class Formatter {
 public:
  Formatter(const Record& record, const FrameworkNames& names, JsonWriter* out)
      : r_(record), names_(names), out_(out) {}

  void Run() {
    std::string name = r_.name.str();
    out_->Key(name);
    if (r_.bare) return Values(2);
    out_->BeginObject();
    Values(3);
    out_->EndObject();
  }

  void Values(int depth) {
    depth_ = depth;
    for (size_t i = 0; i < r_.nodes.size(); ++i) Write(&i);
  }

 private:
  std::string_view Text(const RecordNode& n) const { return std::string_view(r_.text).substr(n.offset, n.length); }

  void Write(size_t* i) {
    const RecordNode& n = r_.nodes[*i];
    switch (n.type) {
      case RecordNodeType::kNull: out_->Null(); break;
      case RecordNodeType::kBool: Head("bool"), out_->Bool(n.i != 0), out_->EndObject(); break;
      case RecordNodeType::kInt: Head("int"), out_->Int(n.i), out_->EndObject(); break;
      case RecordNodeType::kFloat: Head("float"), out_->Number(n.d), out_->EndObject(); break;
      case RecordNodeType::kString: Head("str"), out_->String(Text(n)), out_->EndObject(); break;
      case RecordNodeType::kTyped: Head(n.literal), out_->String(Text(r_.nodes[++*i])), out_->EndObject(); break;
      case RecordNodeType::kEmptyDict: out_->BeginObject(), out_->EndObject(); break;
      case RecordNodeType::kJson:
        scratch_.clear();
        AppendIndented(&scratch_, Text(n), depth_);
        out_->Raw(scratch_);
        break;
      case RecordNodeType::kTensor: Tensor(r_.tensors[static_cast<size_t>(n.i)]); break;
      case RecordNodeType::kKey: out_->Key(Text(n)); break;
      case RecordNodeType::kKeyLiteral: out_->Key(n.literal); break;
      case RecordNodeType::kListBegin: out_->BeginArray(), ++depth_; break;
      case RecordNodeType::kListEnd: out_->EndArray(), --depth_; break;
      case RecordNodeType::kDictBegin: out_->BeginObject(), ++depth_; break;
      case RecordNodeType::kDictEnd: out_->EndObject(), --depth_; break;
    }
  }

  void Head(const char* type) {
    out_->BeginObject();
    out_->Key("type");
    out_->String(type);
    out_->Key("value");
  }

  void Tensor(const TensorRecord& t) {
    out_->BeginObject();
    out_->Key("type");
    out_->String(t.type != nullptr ? std::string_view(t.type) : names_.tensor_type);
    out_->Key("dtype");
    t.dtype_name != nullptr ? dtype_.assign(t.dtype_name)
                            : dtype_.assign(names_.dtype_prefix).append(DTypeName(t.dtype));
    out_->String(dtype_);
    out_->Key("shape");
    out_->BeginArray();
    for (int d = 0; d < t.ndim; ++d) out_->Int(r_.dims[t.dims + static_cast<size_t>(d)]);
    out_->EndArray();
    t.xor_only ? Digest(t) : Statistics(t);
    if (names_.tells_requires_grad) out_->Key("requires_grad"), out_->Bool(t.requires_grad);
    if (!t.extra_last) Extra(t);
    if (t.file_length > 0) {
      out_->Key("data_name");
      out_->String(std::string_view(r_.text).substr(t.file, t.file_length));
    }
    if (t.has_crc) {
      char hex[16];
      std::snprintf(hex, sizeof hex, "%08x", t.crc);
      out_->Key("md5");
      out_->String(hex);
    }
    Findings(t);
    if (t.extra_last) Extra(t);
    out_->EndObject();
  }

  void Extra(const TensorRecord& t) {
    if (t.extra_length == 0) return;
    scratch_.clear();
    AppendIndented(&scratch_, std::string_view(r_.text).substr(t.extra, t.extra_length), depth_);
    out_->Members(scratch_);
  }

  // Only where there is something to say: healthy dumps stay as they are, and readers that know no such keys pass over
  // them.
  void Findings(const TensorRecord& t) {
    if (t.unwritten == Unwritten::kWhole) out_->Key("unwritten"), out_->Bool(true);
    if (t.unwritten == Unwritten::kPart) out_->Key("partly_unwritten"), out_->Bool(true);
    if (!t.has_stats || t.xor_only) return;
    if (t.stats.nan_count > 0) out_->Key("nan_count"), out_->Int(t.stats.nan_count);
    if (t.stats.inf_count > 0) out_->Key("inf_count"), out_->Int(t.stats.inf_count);
    const double margin = OverflowMargin(t.dtype, t.stats);
    if (margin > 0) out_->Key("overflow_margin"), out_->Number(margin);
  }

  void Extreme(const char* key, const TensorRecord& t, double f, int64_t i, uint64_t u) {
    out_->Key(key);
    if (!t.has_stats) return out_->Null();
    if (t.dtype == DType::kBool) return out_->Bool(f != 0);
    if (!IsInteger(t.dtype)) return out_->Number(f);
    const bool is_unsigned = t.dtype >= DType::kUInt8 && t.dtype <= DType::kUInt64;
    is_unsigned ? out_->UInt(u) : out_->Int(i);
  }

  void Digest(const TensorRecord& t) {
    out_->Key("md5");
    if (!t.has_stats) return out_->Null();
    char hex[32];
    std::snprintf(hex, sizeof hex, "0x%016llx", static_cast<unsigned long long>(t.xor_digest));
    out_->String(hex);
  }

  void Statistics(const TensorRecord& t) {
    const Stats& s = t.stats;
    Extreme("Max", t, s.max, s.int_max, s.uint_max);
    Extreme("Min", t, s.min, s.int_min, s.uint_min);
    // The statistics of a single number are the number itself, also where it is negative.
    if (t.has_stats && t.ndim == 0 && t.dtype != DType::kBool && !IsComplex(t.dtype)) {
      Extreme("Mean", t, s.max, s.int_max, s.uint_max);
      Extreme("Norm", t, s.max, s.int_max, s.uint_max);
      return;
    }
    const bool numbers = t.has_stats && t.dtype != DType::kBool;
    out_->Key("Mean");
    numbers ? out_->Number(s.mean) : out_->Null();
    out_->Key("Norm");
    numbers ? out_->Number(s.norm) : out_->Null();
  }

  const Record& r_;
  const FrameworkNames& names_;
  JsonWriter* out_;
  int depth_ = 0;
  std::string scratch_, dtype_;
};

}  // namespace

void FormatRecord(const Record& record, const FrameworkNames& names, JsonWriter* out) {
  Formatter(record, names, out).Run();
}

void FormatValue(const Record& record, const FrameworkNames& names, JsonWriter* out) {
  Formatter(record, names, out).Values(0);
}

void AppendIndented(std::string* out, std::string_view json, int depth) {
  for (char c : json) {
    out->push_back(c);
    if (c == '\n') out->append(static_cast<size_t>(depth), ' ');
  }
}

}  // namespace msprobe
