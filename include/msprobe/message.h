// What the tool says to people: an English template with its arguments. It becomes Chinese only where it is shown, so
// what the user named keeps every byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace msprobe {

class Message {
 public:
  enum class Kind : uint8_t {
    kText,      ///< the user's or a file's own text: the same in every language
    kPart,      ///< one of the texts that the program itself may put into a sentence, without arguments
    kTemplate,  ///< `key` is the English with {} for each of `parts`, the arguments
    kJoined,    ///< `parts` one after another
  };

  Message() = default;
  explicit Message(std::string text) : english_(std::move(text)) {}
  Message(Kind kind, std::string_view key, std::string english, std::vector<Message> parts)
      : kind_(kind), key_(key), english_(std::move(english)), parts_(std::move(parts)) {}

  Kind kind() const { return kind_; }
  /// A text of the program, so it outlives the message.
  std::string_view key() const { return key_; }
  const std::vector<Message>& parts() const { return parts_; }
  const std::string& English() const { return english_; }
  bool empty() const { return english_.empty(); }
  /// Files and programs get the English.
  operator std::string_view() const { return english_; }  // NOLINT: implicit on purpose

  Message& operator+=(const Message& next) {
    if (empty()) return *this = next;
    if (kind_ != Kind::kJoined) {
      Message first = std::move(*this);
      *this = Message(Kind::kJoined, {}, first.english_, {});
      parts_.push_back(std::move(first));
    }
    english_ += next.english_;
    parts_.push_back(next);
    return *this;
  }

  friend bool operator==(const Message& a, const Message& b) { return a.english_ == b.english_; }

 private:
  Kind kind_ = Kind::kText;
  std::string_view key_;
  std::string english_;
  std::vector<Message> parts_;
};

}  // namespace msprobe
