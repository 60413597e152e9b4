#include "json/writer.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace msprobe {

void JsonWriter::NewLine() {
  out_->push_back('\n');
  out_->append(static_cast<size_t>(depth_ * style_.indent), ' ');
}

// Comma and line break before what comes next in its container.
void JsonWriter::Next() {
  if (!std::exchange(first_, false)) out_->append(style_.comma);
  if (style_.indent != 0) NewLine();
}

void JsonWriter::Prefix() {
  if (after_key_) {
    after_key_ = false;
  } else if (depth_ != base_) {
    Next();
  }
}

void JsonWriter::Open(char bracket) {
  Prefix();
  out_->push_back(bracket);
  ++depth_;
  first_ = true;
}

void JsonWriter::Close(char bracket) {
  --depth_;
  if (!first_ && style_.indent != 0) NewLine();
  out_->push_back(bracket);
  first_ = false;
}

void JsonWriter::Key(std::string_view key) {
  Next();
  AppendJsonString(*out_, key, style_.ascii);
  out_->append(style_.colon);
  after_key_ = true;
}

void JsonWriter::String(std::string_view s) {
  Prefix();
  AppendJsonString(*out_, s, style_.ascii);
}

void JsonWriter::Number(double v) {
  if (std::isfinite(v) || style_.not_finite == JsonStyle::NotFinite::kPython) {
    Prefix();
    AppendJsonNumber(*out_, v);
  } else if (style_.not_finite == JsonStyle::NotFinite::kNull) {
    Null();
  } else {
    String(PyRepr(v));
  }
}

void JsonWriter::Rounded(double v, int digits) {
  if (!std::isfinite(v)) return Number(v);
  Prefix();
  char buf[64];
  const auto r = std::to_chars(buf, buf + sizeof buf, v, std::chars_format::general, digits);
  out_->append(buf, r.ptr);
}

void JsonWriter::Int(int64_t v) {
  Prefix();
  AppendInt(*out_, v);
}

void JsonWriter::UInt(uint64_t v) {
  Prefix();
  char buf[24];
  const auto r = std::to_chars(buf, buf + sizeof buf, v);
  out_->append(buf, r.ptr);
}

void JsonWriter::Bool(bool v) {
  Prefix();
  out_->append(v ? "true" : "false");
}

void JsonWriter::Null() {
  Prefix();
  out_->append("null");
}

void JsonWriter::Raw(std::string_view json) {
  Prefix();
  out_->append(json);
}

void JsonWriter::Members(std::string_view json) {
  Next();
  out_->append(json);
}

void JsonWriter::Value(const JsonValue& v) {
  switch (v.kind()) {
    case JsonValue::Kind::kNull: return Null();
    case JsonValue::Kind::kBool: return Bool(v.Bool());
    case JsonValue::Kind::kInt: return Int(v.Int());
    case JsonValue::Kind::kUInt: return UInt(v.UInt());
    case JsonValue::Kind::kDouble: return Number(v.Number());
    case JsonValue::Kind::kString: return String(v.Text());
    case JsonValue::Kind::kArray: return Array(v.Items(), [this](const JsonValue& item) { Value(item); });
    case JsonValue::Kind::kObject:
      BeginObject();
      for (const JsonMember& m : v.Members()) Key(m.name), Value(m.value);
      return EndObject();
  }
}

}  // namespace msprobe
