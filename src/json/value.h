// JSON values of one text, and the document that holds them. A document's memory is reused, so parsing op after op
// allocates nothing.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace msprobe {

struct JsonMember;

/// 16 bytes that refer to the memory of a document. Access is total: what a value does not have is null, 0, false or
/// empty, so a caller checks the kind only where it matters.
class JsonValue {
 public:
  enum class Kind : uint8_t { kNull, kBool, kInt, kUInt, kDouble, kString, kArray, kObject };

  constexpr JsonValue() : int_(0) {}

  Kind kind() const { return kind_; }
  bool IsNull() const { return kind_ == Kind::kNull; }
  bool IsBool() const { return kind_ == Kind::kBool; }
  bool IsNumber() const { return kind_ >= Kind::kInt && kind_ <= Kind::kDouble; }
  /// Written without point and exponent: fits int64_t, uint64_t, int.
  bool IsInt() const { return kind_ == Kind::kInt; }
  bool IsUInt() const { return kind_ == Kind::kUInt || (kind_ == Kind::kInt && int_ >= 0); }
  bool IsInt32() const {
    return IsInt() && int_ >= std::numeric_limits<int>::min() && int_ <= std::numeric_limits<int>::max();
  }
  bool IsDouble() const { return kind_ == Kind::kDouble; }
  bool IsString() const { return kind_ == Kind::kString; }
  bool IsArray() const { return kind_ == Kind::kArray; }
  bool IsObject() const { return kind_ == Kind::kObject; }

  bool Bool() const { return IsBool() && int_ != 0; }
  int64_t Int() const { return IsInt() ? int_ : 0; }
  int Int32() const { return IsInt32() ? static_cast<int>(int_) : 0; }
  uint64_t UInt() const { return IsUInt() ? uint_ : 0; }
  /// Any number, whole ones too.
  double Number() const {
    switch (kind_) {
      case Kind::kDouble: return double_;
      case Kind::kInt: return static_cast<double>(int_);
      case Kind::kUInt: return static_cast<double>(uint_);
      default: return 0;
    }
  }
  std::string_view Text() const { return IsString() ? std::string_view(text_, size_) : std::string_view(); }

  /// Elements of an array, members of an object, bytes of a string.
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<const JsonValue> Items() const { return {items_, IsArray() ? size_ : 0}; }
  std::span<JsonValue> Items() { return {items_, IsArray() ? size_ : 0}; }
  std::span<const JsonMember> Members() const;
  /// Null when absent. Of members of one name the last one counts.
  const JsonValue* Find(std::string_view key) const;
  JsonValue* Find(std::string_view key) { return const_cast<JsonValue*>(std::as_const(*this).Find(key)); }
  /// The element or member, null when there is none.
  const JsonValue& operator[](std::integral auto index) const {
    return IsArray() && static_cast<uint64_t>(index) < size_ ? items_[index] : kNone;
  }
  const JsonValue& operator[](std::string_view key) const {
    const JsonValue* found = Find(key);
    return found ? *found : kNone;
  }

  /// The same value; the order of members does not matter.
  bool operator==(const JsonValue& o) const;

  void SetNull() { *this = JsonValue(); }

  static JsonValue Of(bool value) { return JsonValue(Kind::kBool, int64_t{value}); }
  static JsonValue Of(int64_t value) { return JsonValue(Kind::kInt, value); }
  static JsonValue Of(uint64_t value) {
    return JsonValue(value >> 63 ? Kind::kUInt : Kind::kInt, static_cast<int64_t>(value));
  }
  static JsonValue Of(double value) {
    JsonValue out(Kind::kDouble, 0);
    out.double_ = value;
    return out;
  }
  /// The memory must outlive the value.
  static JsonValue Of(std::string_view text) {
    JsonValue out(Kind::kString, 0, text.size());
    out.text_ = text.data();
    return out;
  }
  static JsonValue Of(std::span<JsonValue> items) {
    JsonValue out(Kind::kArray, 0, items.size());
    out.items_ = items.data();
    return out;
  }
  static JsonValue Of(std::span<JsonMember> members);

 private:
  static const JsonValue kNone;

  constexpr JsonValue(Kind kind, int64_t value, size_t size = 0)
      : int_(value), size_(static_cast<uint32_t>(size)), kind_(kind) {}

  union {
    int64_t int_;
    uint64_t uint_;
    double double_;
    const char* text_;
    JsonValue* items_;
    JsonMember* members_;
  };
  uint32_t size_ = 0;
  Kind kind_ = Kind::kNull;
};
static_assert(sizeof(JsonValue) == 16);

struct JsonMember {
  std::string_view name;
  JsonValue value;
};

inline std::span<const JsonMember> JsonValue::Members() const { return {members_, IsObject() ? size_ : 0}; }
inline JsonValue JsonValue::Of(std::span<JsonMember> members) {
  JsonValue out(Kind::kObject, 0, members.size());
  out.members_ = members.data();
  return out;
}
inline const JsonValue* JsonValue::Find(std::string_view key) const {
  if (!IsObject()) return nullptr;
  for (const JsonMember* m = members_ + size_; m != members_;) {
    --m;
    if (m->name == key) return &m->value;
  }
  return nullptr;
}

/// Memory in blocks. Clear() gives all of it out again, and keeps what a usual text needs.
class JsonArena {
 public:
  JsonArena() = default;
  JsonArena(JsonArena&&) noexcept;
  JsonArena& operator=(JsonArena&&) noexcept;

  /// Aligned for values and members.
  char* Take(size_t bytes) {
    bytes = (bytes + 7) & ~size_t{7};
    if (bytes > static_cast<size_t>(end_ - at_)) return TakeFromNewBlock(bytes);
    char* out = at_;
    at_ += bytes;
    return out;
  }
  /// Memory for up to that many bytes, of which Take() gives out as many as are needed; null when a new block would be.
  char* Room(int bytes) const { return end_ - at_ >= bytes ? at_ : nullptr; }
  std::string_view Keep(std::string_view text);
  template <typename T>
  std::span<T> Take(size_t count) {
    return {reinterpret_cast<T*>(Take(count * sizeof(T))), count};
  }
  void Clear();

 private:
  struct Block {
    std::unique_ptr<char[]> memory;
    size_t bytes;
  };
  char* TakeFromNewBlock(size_t bytes);

  std::vector<Block> blocks_;
  size_t used_ = 0;  // blocks given out, in part or whole
  char *at_ = nullptr, *end_ = nullptr;
};

/// The values of one text. Parsing into it again drops those of the parse before.
class JsonDoc : public JsonValue {
 public:
  JsonDoc() = default;
  JsonDoc(JsonDoc&& o) noexcept : JsonValue(o), arena_(std::move(o.arena_)), stack_(std::move(o.stack_)) {
    o.SetNull();
  }
  JsonDoc& operator=(JsonDoc&& o) noexcept;

  void Clear();
  /// Takes the member `key` out of the object that this is (the last member moves to its place), then appends a copy of
  /// `value` under that key unless it is null.
  void Replace(std::string_view key, const JsonValue* value);

 private:
  friend class JsonParser;
  JsonValue Copy(const JsonValue& value);

  JsonArena arena_;
  std::vector<JsonValue> stack_;  // of open containers: their elements so far
};

}  // namespace msprobe
