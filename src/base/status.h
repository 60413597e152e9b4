// Errors as values. Inside the library nothing throws on purpose; the Python edge and the command turn a Status into an
// exception or an exit code.
#pragma once

#include <cassert>
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
  kInterrupted = 130,  ///< Ctrl-C
};

/// Success, or a code and a one-line text that says what, where, and what to do next.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {
    assert(code == Code::kOk || !message_.empty());
  }
  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

inline Status OkStatus() { return {}; }
inline Status UsageError(std::string text) { return {Code::kUsage, std::move(text)}; }
inline Status BadInput(std::string text) { return {Code::kBadInput, std::move(text)}; }
inline Status InternalError(std::string text) { return {Code::kInternal, std::move(text)}; }
Status Interrupted();

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

#define MSP_CONCAT_INNER(a, b) a##b
#define MSP_CONCAT(a, b) MSP_CONCAT_INNER(a, b)
#define MSP_RETURN_IF_ERROR(expr)                                    \
  do {                                                               \
    if (::msprobe::Status msp_s = (expr); !msp_s.ok()) return msp_s; \
  } while (0)
#define MSP_ASSIGN_OR_RETURN(lhs, expr) MSP_ASSIGN_INNER(MSP_CONCAT(msp_v, __LINE__), lhs, expr)
#define MSP_ASSIGN_INNER(tmp, lhs, expr) \
  auto tmp = (expr);                     \
  if (!tmp.ok()) return tmp.status();    \
  lhs = std::move(*tmp)

}  // namespace msprobe
