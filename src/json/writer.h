// JSON written as a stream: the one writer of all rooms.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

#include "json/value.h"

namespace msprobe {

/// How a text is laid out and spelled.
struct JsonStyle {
  /// What stands for NaN and the infinities, which JSON does not have.
  enum class NotFinite : uint8_t {
    kPython,  ///< NaN, Infinity, -Infinity, as json.dumps writes them and dumps hold them
    kNull,    ///< null
    kText,    ///< "nan", "inf", "-inf"
  };
  int indent = 0;  ///< spaces a level, each element on a line of its own; 0: one line
  std::string_view comma = ", ", colon = ": ";
  bool ascii = true;  ///< what is not ASCII as \uXXXX
  NotFinite not_finite = NotFinite::kPython;
};

/// As json.dumps(value): {"a": [1, 2]}.
inline constexpr JsonStyle kJsonLine{};
/// As json.dumps(value, indent=1).
inline constexpr JsonStyle kJsonIndented{.indent = 1, .comma = ","};
/// As json.dumps(value, separators=(",", ":")).
inline constexpr JsonStyle kJsonCompact{.comma = ",", .colon = ":"};
/// What the page reads: UTF-8, no NaN.
inline constexpr JsonStyle kJsonPage{
    .comma = ",", .colon = ":", .ascii = false, .not_finite = JsonStyle::NotFinite::kNull};

/// Append-only and without a tree: the caller opens and closes containers, the writer puts commas, line breaks and
/// indentation.
class JsonWriter {
 public:
  /// Writes a text of its own, which Take() gives out.
  explicit JsonWriter(const JsonStyle& style = kJsonLine) : JsonWriter(&text_, style) {}
  /// Appends to `out`. `depth` is the nesting level at which the text will stand. A value at that level starts where
  /// `out` ends; a member at that level is written without the braces of its object: on a line of its own if lines are
  /// indented, behind a comma if it is not the first.
  explicit JsonWriter(std::string* out, const JsonStyle& style = kJsonLine, int depth = 0)
      : out_(out), style_(style), base_(depth), depth_(depth) {}
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  void BeginObject() { Open('{'); }
  void EndObject() { Close('}'); }
  void BeginArray() { Open('['); }
  void EndArray() { Close(']'); }
  void Key(std::string_view key);
  /// What Key() wrote at this depth before, comma and line break included: a tenth of a table's time where the same
  /// keys come with every row.
  void KeptKey(std::string_view text) {
    out_->append(text);
    first_ = false;
    after_key_ = true;
  }
  void String(std::string_view s);
  void Number(double v);
  /// "%.{digits}g".
  void Rounded(double v, int digits);
  void Int(int64_t v);
  void UInt(uint64_t v);
  void Bool(bool v);
  void Null();
  /// JSON text already formatted for this depth.
  void Raw(std::string_view json);
  /// Text of members of the open object, without its braces.
  void Members(std::string_view json);

  /// A truth, a number, a text, a list of such; null for nullptr and for an optional or a pointer without a value.
  template <typename T>
  requires(!std::derived_from<T, JsonValue>) void Value(const T& v) {
    if constexpr (std::same_as<T, std::nullptr_t>) {
      Null();
    } else if constexpr (std::same_as<T, bool>) {
      Bool(v);
    } else if constexpr (std::floating_point<T>) {
      Number(static_cast<double>(v));
    } else if constexpr (std::signed_integral<T>) {
      Int(v);
    } else if constexpr (std::unsigned_integral<T>) {
      UInt(v);
    } else if constexpr (std::convertible_to<const T&, std::string_view>) {
      String(v);
    } else if constexpr (std::ranges::input_range<const T&>) {
      Array(v, [this](const auto& element) { Value(element); });
    } else {
      v ? Value(*v) : Null();
    }
  }
  /// A value that was read. The parser bounds its depth, and with it the recursion.
  void Value(const JsonValue& v);
  template <typename T>
  void Member(std::string_view key, const T& v) {
    Key(key);
    Value(v);
  }
  void RawMember(std::string_view key, std::string_view json) {
    Key(key);
    Raw(json);
  }
  /// {..} whose members `fill` writes.
  template <std::invocable Fill>
  void Object(Fill&& fill) {
    BeginObject();
    std::forward<Fill>(fill)();
    EndObject();
  }
  /// [..] of what `each` writes of each element.
  template <typename List, typename Each>
  void Array(const List& list, Each&& each) {
    BeginArray();
    for (const auto& element : list) each(element);
    EndArray();
  }
  template <std::invocable Fill>
  void ObjectMember(std::string_view key, Fill&& fill) {
    Key(key);
    Object(std::forward<Fill>(fill));
  }
  template <typename List, typename Each>
  void ArrayMember(std::string_view key, const List& list, Each&& each) {
    Key(key);
    Array(list, std::forward<Each>(each));
  }

  /// Bytes of the text so far.
  size_t size() const { return out_->size(); }
  /// The text of a writer that was not given one.
  std::string Take() { return std::move(text_); }

 private:
  void Prefix();
  void Next();
  void NewLine();
  void Open(char bracket);
  void Close(char bracket);

  std::string text_;
  std::string* out_;
  JsonStyle style_;
  int base_, depth_;
  bool first_ = true;
  bool after_key_ = false;
};

}  // namespace msprobe
