#include "graph/params.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "tensor/stats.h"

namespace msprobe {
namespace {

constexpr std::array<std::string_view, 4> kStats{"Max", "Min", "Mean", "Norm"};
constexpr std::array<std::string_view, 4> kRankNames{"src", "dst", "group_src", "group_dst"};
constexpr std::array<std::string_view, 5> kP2pKeys{"class_type", "op", "peer", "tag", "group_id"};

/// None, 0, "", [] and {}: what the recording tool treats as not given.
bool IsFalsy(const JsonValue* v) {
  if (!v || v->IsNull()) return true;
  if (v->IsBool()) return !v->GetBool();
  if (v->IsNumber()) return v->GetDouble() == 0;
  if (v->IsString()) return v->GetStringLength() == 0;
  return v->IsArray() ? v->Empty() : v->ObjectEmpty();
}

std::string_view PyTypeName(const JsonValue* v) {
  if (!v || v->IsNull()) return "<class 'NoneType'>";
  if (v->IsBool()) return "<class 'bool'>";
  if (v->IsInt64() || v->IsUint64()) return "<class 'int'>";
  if (v->IsNumber()) return "<class 'float'>";
  if (v->IsString()) return "<class 'str'>";
  return v->IsArray() ? "<class 'list'>" : "<class 'dict'>";
}

std::string PyStr(const JsonValue* v) {
  std::string out;
  AppendPyStr(out, v ? Value::Of(*v) : Value::Null());
  return out;
}

// A saved tensor goes by the name of its file.
std::string_view DataName(const JsonValue* name) {
  return name && name->IsString() && name->GetStringLength() > 0 ? Text(*name) : std::string_view("-1");
}

// The fields that comparing needs.
enum Known : uint8_t { kMax, kMin, kMean, kNorm, kDType, kShape, kRequiresGrad, kMd5, kUnknown };
constexpr std::array<Value Param::*, kUnknown> kKnownFields{&Param::max,           &Param::min,   &Param::mean,
                                                            &Param::norm,          &Param::dtype, &Param::shape,
                                                            &Param::requires_grad, &Param::md5};

// Told apart by length first because every field of a dump passes here.
Known KnownOf(std::string_view key) {
  switch (key.size()) {
    case 3: return key == "Max" ? kMax : key == "Min" ? kMin : key == "md5" ? kMd5 : kUnknown;
    case 4: return key == "Mean" ? kMean : key == "Norm" ? kNorm : kUnknown;
    case 5: return key == "dtype" ? kDType : key == "shape" ? kShape : kUnknown;
    case 13: return key == "requires_grad" ? kRequiresGrad : kUnknown;
    default: return kUnknown;
  }
}

/// Members of a leaf that decide about others, found in one pass; of duplicates the last one.
struct Members {
  const JsonValue *type = nullptr, *value = nullptr, *dtype = nullptr, *data_name = nullptr;
  std::array<bool, kUnknown + 1> given{};

  void Note(std::string_view key, const JsonValue& v) {
    given[KnownOf(key)] = true;
    if (key == "type") type = &v;
    if (key == "value") value = &v;
    if (key == "dtype") dtype = &v;
    if (key == "data_name") data_name = &v;
  }
};

const JsonValue* TensorOf(const JsonValue& leaf) {
  const JsonValue* kind = Find(leaf, "class_type");
  if (!kind || !kind->IsString() || Text(*kind) != "torch.distributed.P2POp") return &leaf;
  const JsonValue* tensor = Find(leaf, "tensor");
  return tensor && tensor->IsObject() ? tensor : nullptr;
}

}  // namespace

void ParamList::Read(std::string_view node, const JsonValue& op) {
  items_.clear();
  FlattenOp(node, op, &items_);
  for (const Item& item : items_) {
    name_.assign(node);
    name_ += item.suffix;
    const JsonValue* tensor = item.leaf && item.leaf->IsObject() ? TensorOf(*item.leaf) : nullptr;
    const std::string_view data_name = DataName(tensor ? Find(*tensor, "data_name") : nullptr);
    std::string_view key = name_;
    if (data_name != "-1") {
      const size_t dot = data_name.rfind('.');
      key = data_name.substr(0, dot);
    }
    Param* p = Slot(key, item.state == ItemState::kOutput);
    p->state = item.state;
    if (tensor) {
      Fill(name_, *tensor, p);
    } else {
      Set("Max", Value::Null(), p);  // shown as a single null
    }
    if (item.leaf && item.leaf != tensor) {
      for (std::string_view k : kP2pKeys) {
        const JsonValue* v = Find(*item.leaf, k);
        Set(k, v ? Value::Of(*v) : Value::Null(), p);
      }
    }
  }
}

// Index of the parameter of that name, or count_.
size_t ParamList::Known(std::string_view name, bool output) {
  static constexpr size_t kFew = 64;
  const auto same = [&](size_t i) {
    const Param& p = params_[i];
    return p.name.size() == name.size() && p.is_output() == output && p.name == name;
  };
  if (count_ < kFew) {
    for (size_t i = 0; i < count_; ++i)
      if (same(i)) return i;
    return count_;
  }
  for (; indexed_ < count_; ++indexed_) {
    seen_.emplace(std::hash<std::string_view>()(params_[indexed_].name), indexed_);
  }
  const auto [begin, end] = seen_.equal_range(std::hash<std::string_view>()(name));
  for (auto it = begin; it != end; ++it)
    if (same(it->second)) return it->second;
  return count_;
}

Param* ParamList::Slot(std::string_view name, bool output) {
  const size_t i = Known(name, output);
  if (i == count_) {
    if (count_ == params_.size()) params_.emplace_back();
    params_[count_++].name.assign(name);
  }
  Param& p = params_[i];
  p.fields.clear();
  p.has_md5 = false;
  p.given = 0;
  p.max = p.min = p.mean = p.norm = p.dtype = p.shape = p.requires_grad = p.md5 = Value::Null();
  return &p;
}

std::string_view ParamList::Keep(std::string text) {
  texts_.push_back(std::move(text));
  return texts_.back();
}

void ParamList::Set(std::string_view key, const Value& v, Param* p) {
  const auto known = KnownOf(key);
  if (known != kUnknown) {
    p->*kKnownFields[known] = v;
    const auto bit = static_cast<uint8_t>(1U << known);
    const bool fresh = (p->given & bit) == 0;
    p->given |= bit;
    if (fresh) {
      p->fields.push_back({key, v});
      return;
    }
  }
  for (Field& f : p->fields) {
    if (f.key.size() != key.size() || (!key.empty() && f.key[0] != key[0]) || f.key != key) continue;
    f.value = v;
    return;
  }
  p->fields.push_back({key, v});
}

void ParamList::SetStats(const Value& v, Param* p) {
  for (std::string_view key : kStats) Set(key, v, p);
}

void ParamList::Fill(std::string_view full_name, const JsonValue& leaf, Param* p) {
  Members members;
  for (const auto& m : leaf.GetObject()) {
    const std::string_view key = Text(m.name);
    if (key == "state" || key == "full_op_name") continue;
    members.Note(key, m.value);
    if (m.value.IsBool()) {
      Set(key, Value::Of(m.value.GetBool() ? std::string_view("True") : std::string_view("False")), p);
    } else {
      Set(key, Value::Of(m.value), p);
    }
  }
  Set("data_name", Value::Of(DataName(members.data_name)), p);
  if (!members.given[kRequiresGrad]) Set("requires_grad", Value::Null(), p);
  for (size_t i = 0; i < kStats.size(); ++i) {
    if (!members.given[kMax + i]) Set(kStats[i], Value::Null(), p);
  }
  if (IsFalsy(members.dtype)) {
    const JsonValue* type = members.type;
    FillScalar(full_name, leaf, type && type->IsString() ? Text(*type) : std::string_view(), p);
  }
  const bool no_md5 = p->md5.is_null() || (p->md5.is_text() && p->md5.text.empty());
  p->has_md5 = !no_md5 && p->dtype.is_text() && p->shape.kind == Value::Kind::kJson;
  if (!no_md5) return;
  if (!members.value) return Set("md5", Value::Of(std::string_view("00000000")), p);  // of no text
  const std::string text = PyStr(members.value);
  Set("md5", Value::Of(Keep(fmt::format("{:08x}", Crc32(text.data(), text.size())))), p);
}

void ParamList::FillScalar(std::string_view full_name, const JsonValue& leaf, std::string_view type, Param* p) {
  const JsonValue* value = Find(leaf, "value");
  const Value raw = value ? Value::Of(*value) : Value::Null();
  const Value type_value = Value::Of(type);
  const std::string_view last = full_name.substr(full_name.rfind('.') + 1);
  const bool is_rank = std::find(kRankNames.begin(), kRankNames.end(), last) != kRankNames.end();
  if (type == "torch.Size") {
    Set("dtype", type_value, p);
    Set("shape", Value::Of(Keep(PyStr(value))), p);
  } else if (type == "slice") {
    Set("dtype", type_value, p);
    const bool list = value && value->IsArray();
    Set("shape", Value::Of(Keep(list ? fmt::format("({},)", value->Size()) : std::string("()"))), p);
  } else if (type == "ellipsis") {
    Set("dtype", type_value, p);
    Set("shape", Value::Of(std::string_view("[]")), p);
    SetStats(raw, p);
  } else if (is_rank || type == "torch.ProcessGroup") {
    const Value text = Value::Of(Keep(PyStr(is_rank ? value : Find(leaf, "group_ranks"))));
    Set("dtype", type_value, p);
    Set("shape", Value::Of(std::string_view("[]")), p);
    SetStats(text, p);
    Set("md5", text, p);
  } else {
    Set("dtype", Value::Of(PyTypeName(value)), p);
    Set("shape", Value::Of(std::string_view("[]")), p);
    SetStats(raw, p);
  }
}

}  // namespace msprobe
