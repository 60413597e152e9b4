// A JSON parser that builds rapidjson documents. RapidJSON's own number parser reads out of bounds for exponents such
// as 1e-2147483639 and cannot keep numbers as text, so only its document is used.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "dump/json.h"

namespace msprobe {

/// One pass over the text, without recursion. Generator for rapidjson::Document::Populate.
class JsonParser {
 public:
  explicit JsonParser(std::string_view text) : begin_(text.data()), p_(begin_), end_(begin_ + text.size()) {}
  /// False after an error: then position() and expected() tell it, else expected() is empty.
  bool operator()(rapidjson::Document& out);
  size_t position() const { return static_cast<size_t>(p_ - begin_); }
  std::string_view expected() const { return expected_; }

 private:
  struct Frame {
    bool object;
    unsigned count;
  };
  bool Fail(const char* expected) {
    expected_ = expected;
    return false;
  }
  void SkipSpace();
  bool Scalar(rapidjson::Document& out);
  bool Literal(std::string_view word);
  bool Number(rapidjson::Document& out);
  bool Float(rapidjson::Document& out, const char* start);
  bool String(std::string_view* text);
  bool Escape();
  /// Tables, databases and pages only take UTF-8.
  bool MakeUtf8(std::string_view* text);
  bool Hex4(unsigned* code);
  bool Key(rapidjson::Document& out);
  /// After a value: the comma and what follows, or the closes.
  bool AfterValue(rapidjson::Document& out, bool* done);
  void End(rapidjson::Document& out);

  const char* begin_;
  const char* p_;
  const char* end_;
  std::string_view expected_;
  std::string scratch_;  // a string with escapes, decoded
  int depth_ = 0;
  Frame frames_[kMaxJsonDepth];
};

}  // namespace msprobe
