// Errors as values: nothing of this library throws on purpose.
#pragma once

#include <msprobe/message.h>

#include <cassert>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace msprobe {

/// What kind of failure; the number is the exit code of the command.
enum class Code : int {
  kOk = 0,
  kFindings = 1,       ///< differences found where the command was asked to say so
  kUsage = 2,          ///< wrong options or arguments
  kBadInput = 3,       ///< a file or directory cannot be used
  kInternal = 4,       ///< a fault of ours, or the machine's (disk full, out of memory)
  kUndecided = 5,      ///< nothing that was given decides what was asked
  kInterrupted = 130,  ///< Ctrl-C
};

/// Success, or a code and a one-line text that says what, where, and what to do next.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, Message text) : code_(code), text_(std::make_shared<const Message>(std::move(text))) {
    assert(code == Code::kOk || !text_->empty());
  }
  /// A text of the user or a file, which has no translation.
  Status(Code code, std::string text) : Status(code, Message(std::move(text))) {}
  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const Message& text() const { return text_ ? *text_ : kNoText; }
  /// In English.
  const std::string& message() const { return text().English(); }

 private:
  inline static const Message kNoText;
  Code code_ = Code::kOk;
  std::shared_ptr<const Message> text_;
};

inline Status OkStatus() { return {}; }
inline Status UsageError(Message text) { return {Code::kUsage, std::move(text)}; }
inline Status UsageError(std::string text) { return {Code::kUsage, std::move(text)}; }
inline Status BadInput(Message text) { return {Code::kBadInput, std::move(text)}; }
inline Status BadInput(std::string text) { return {Code::kBadInput, std::move(text)}; }
inline Status InternalError(Message text) { return {Code::kInternal, std::move(text)}; }
inline Status InternalError(std::string text) { return {Code::kInternal, std::move(text)}; }

/// A value or the Status that says why there is none.
template <typename T>
class [[nodiscard]] StatusOr {
 public:
  StatusOr(Status status) : status_(std::move(status)) { assert(!status_.ok()); }  // NOLINT: implicit on purpose
  StatusOr(T value) : value_(std::move(value)) {}                                  // NOLINT: implicit on purpose
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace msprobe
