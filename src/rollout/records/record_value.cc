#include "rollout/records/record_value.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/message.h"
#include "tensor/kernels/metrics_sources.h"
#include "weights/weight_tensor.h"

namespace msprobe {
namespace {

using Kind = RecordValue::Kind;

Status TooMany(std::string_view path) {
  return BadInput(Msg("{} holds more numbers than are read of records: give a part of the requests", path));
}

Status TooDeep(std::string_view path) {
  return BadInput(Msg("{} nests lists more deeply than records do: give the records themselves", path));
}

bool IsPlainNumber(const JsonValue& v) { return v.IsNumber() || v.IsBool() || v.IsNull(); }

double NumberOf(const JsonValue& v) {
  if (v.IsNull()) return std::numeric_limits<double>::quiet_NaN();
  return v.IsBool() ? static_cast<double>(v.Bool()) : v.Number();
}

StatusOr<RecordValue> FromJson(const JsonValue& json, std::string_view path, int depth, size_t* numbers) {
  if (depth > kDeepestRecord) return TooDeep(path);
  RecordValue out;
  if (json.IsString()) {
    out.kind = Kind::kText;
    out.text = std::string(json.Text());
  } else if (json.IsNumber() || json.IsBool()) {
    out.kind = Kind::kNumber;
    out.number = NumberOf(json);
  } else if (json.IsArray()) {
    const auto items = json.Items();
    if (items.size() > *numbers) return TooMany(path);
    *numbers -= items.size();
    if (std::all_of(items.begin(), items.end(), IsPlainNumber)) {
      out.kind = Kind::kNumbers;
      out.shape = {static_cast<int64_t>(items.size())};
      out.numbers.reserve(items.size());
      for (const JsonValue& item : items) out.numbers.push_back(NumberOf(item));
      return out;
    }
    out.kind = Kind::kList;
    for (const JsonValue& item : items) {
      MSP_ASSIGN_OR_RETURN(RecordValue inner, FromJson(item, path, depth + 1, numbers));
      out.items.push_back(std::move(inner));
    }
  } else if (json.IsObject()) {
    out.kind = Kind::kDict;
    for (const JsonMember& member : json.Members()) {
      MSP_ASSIGN_OR_RETURN(RecordValue inner, FromJson(member.value, path, depth + 1, numbers));
      out.members.push_back({std::string(member.name), std::move(inner)});
    }
  }
  return out;
}

StatusOr<RecordValue> FromTensor(const PtTensor& tensor, std::string_view path, size_t* numbers) {
  int64_t count = 0;
  if (!CountElements(tensor.shape, &count) || static_cast<size_t>(count) > *numbers) return TooMany(path);
  *numbers -= static_cast<size_t>(count);
  FileTensor file;
  file.dtype = tensor.dtype;
  file.data = tensor.data;
  file.shape = tensor.shape;
  file.strides = tensor.strides;
  const WeightTensor whole = WholeTensor(std::move(file), 0);
  RecordValue out;
  out.kind = Kind::kNumbers;
  out.shape = tensor.shape;
  out.numbers.resize(static_cast<size_t>(count));
  std::string bytes(whole.bytes(), '\0');
  if (count > 0) GatherElements(whole, 0, count, bytes.data());
  if (!metrics::ToDoubles(tensor.dtype, bytes.data(), static_cast<size_t>(count), out.numbers.data())) {
    return BadInput(Msg("{} has elements of a type that is not read here: save them as numbers", path));
  }
  if (out.shape.empty() && count == 1) {
    out.kind = Kind::kNumber;
    out.number = out.numbers[0];
  }
  return out;
}

bool IsPlainNumber(const PtValue& v) {
  using PtKind = PtValue::Kind;
  return v.kind == PtKind::kNone || v.kind == PtKind::kBool || v.kind == PtKind::kInt || v.kind == PtKind::kFloat;
}

double NumberOf(const PtValue& v) {
  if (v.kind == PtValue::Kind::kNone) return std::numeric_limits<double>::quiet_NaN();
  return v.kind == PtValue::Kind::kFloat ? v.d : static_cast<double>(v.i);
}

StatusOr<RecordValue> FromTorch(const PtValue& value, std::string_view path, int depth, size_t* numbers) {
  using PtKind = PtValue::Kind;
  if (depth > kDeepestRecord) return TooDeep(path);
  RecordValue out;
  if (value.kind == PtKind::kTensor) return FromTensor(*value.tensor, path, numbers);
  if (value.kind == PtKind::kText) {
    out.kind = Kind::kText;
    out.text = std::string(value.text);
  } else if (IsPlainNumber(value) && value.kind != PtKind::kNone) {
    out.kind = Kind::kNumber;
    out.number = NumberOf(value);
  } else if (value.kind == PtKind::kList || value.kind == PtKind::kTuple) {
    if (value.items.size() > *numbers) return TooMany(path);
    *numbers -= value.items.size();
    if (std::all_of(value.items.begin(), value.items.end(), [](const PtValue& v) { return IsPlainNumber(v); })) {
      out.kind = Kind::kNumbers;
      out.shape = {static_cast<int64_t>(value.items.size())};
      for (const PtValue& item : value.items) out.numbers.push_back(NumberOf(item));
      return out;
    }
    out.kind = Kind::kList;
    for (const PtValue& item : value.items) {
      MSP_ASSIGN_OR_RETURN(RecordValue inner, FromTorch(item, path, depth + 1, numbers));
      out.items.push_back(std::move(inner));
    }
  } else if (value.kind == PtKind::kDict) {
    out.kind = Kind::kDict;
    for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
      if (value.items[i].kind != PtKind::kText) continue;
      MSP_ASSIGN_OR_RETURN(RecordValue inner, FromTorch(value.items[i + 1], path, depth + 1, numbers));
      out.members.push_back({std::string(value.items[i].text), std::move(inner)});
    }
  }
  return out;
}

}  // namespace

const RecordValue* RecordValue::Find(std::string_view key) const {
  for (const auto& [name, value] : members) {
    if (name == key) return &value;
  }
  return nullptr;
}

int64_t RecordValue::length() const {
  if (kind == Kind::kList) return static_cast<int64_t>(items.size());
  if (kind == Kind::kNumbers) return shape.empty() ? -1 : shape[0];
  return -1;
}

RecordValue RecordValue::At(int64_t index) const {
  if (index < 0 || index >= length()) return {};
  if (kind == Kind::kList) return items[static_cast<size_t>(index)];
  RecordValue out;
  const size_t each = numbers.size() / static_cast<size_t>(shape[0]);
  const auto begin = numbers.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(index) * each);
  if (shape.size() == 1) {
    out.kind = Kind::kNumber;
    out.number = *begin;
    return out;
  }
  out.kind = Kind::kNumbers;
  out.shape.assign(shape.begin() + 1, shape.end());
  out.numbers.assign(begin, begin + static_cast<ptrdiff_t>(each));
  return out;
}

bool RecordValue::Flatten(std::vector<double>* out) const {
  switch (kind) {
    case Kind::kNumber: out->push_back(number); return true;
    case Kind::kNumbers: out->insert(out->end(), numbers.begin(), numbers.end()); return true;
    case Kind::kList:
      return std::all_of(items.begin(), items.end(), [&](const RecordValue& v) { return v.Flatten(out); });
    default: return false;
  }
}

std::vector<int64_t> RecordValue::BoxShape() const {
  if (kind == Kind::kNumbers) return shape;
  if (kind != Kind::kList || items.empty()) return {};
  std::vector<int64_t> inner = items[0].BoxShape();
  for (const RecordValue& item : items) {
    if (item.BoxShape() != inner) return {};
  }
  if (inner.empty()) return {};
  inner.insert(inner.begin(), static_cast<int64_t>(items.size()));
  return inner;
}

StatusOr<RecordValue> RecordOf(const JsonValue& json, std::string_view path, size_t* numbers) {
  return FromJson(json, path, 0, numbers);
}

StatusOr<RecordValue> RecordOf(const PtValue& value, std::string_view path, size_t* numbers) {
  return FromTorch(value, path, 0, numbers);
}

}  // namespace msprobe
