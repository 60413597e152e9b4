// What a file of records holds, whatever its format: a JSON text or a file of torch.save().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"
#include "tensor/files/pt_value.h"

namespace msprobe {

/// Numbers of all records of a side together; a file that holds more is refused.
inline constexpr size_t kMostRecordNumbers = size_t{1} << 26;
inline constexpr int kDeepestRecord = 12;

struct RecordValue {
  struct Member;
  enum class Kind : uint8_t { kNone, kNumber, kText, kNumbers, kList, kDict };
  Kind kind = Kind::kNone;
  double number = 0;
  std::string text;
  std::vector<double> numbers;  // kNumbers, in C order; NaN for null
  std::vector<int64_t> shape;   // of `numbers`
  std::vector<RecordValue> items;
  std::vector<Member> members;

  const RecordValue* Find(std::string_view key) const;
  /// Elements of the outermost dimension of a list or of numbers; -1 for others.
  int64_t length() const;
  /// The element of the outermost dimension.
  RecordValue At(int64_t index) const;
  /// All numbers in it, one behind the other, lists of lists too; false where it holds anything else.
  bool Flatten(std::vector<double>* out) const;
  /// Lengths of its dimensions where it is a full box of numbers; empty else.
  std::vector<int64_t> BoxShape() const;
};

struct RecordValue::Member {
  std::string name;
  RecordValue value;
};

/// `numbers` is what the file may still hold. kBadInput beyond, and for what is nested too deeply.
StatusOr<RecordValue> RecordOf(const JsonValue& json, std::string_view path, size_t* numbers);
StatusOr<RecordValue> RecordOf(const PtValue& value, std::string_view path, size_t* numbers);

}  // namespace msprobe
