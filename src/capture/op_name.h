// Names of ops as numbers: the text is made when it is written.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace msprobe {

enum class NameForm : uint8_t {
  kNone,            // JSON null
  kPlain,           // base
  kApiForward,      // base.N.forward
  kApiBackward,     // base.N.backward
  kModuleForward,   // base.forward.N
  kModuleBackward,  // base.backward.N
  kParamGrad,       // base.parameters_grad.N
};

/// Points to an interned base text, which lives as long as the process.
struct OpName {
  const std::string* base = nullptr;
  int32_t index = 0;
  NameForm form = NameForm::kNone;

  bool empty() const { return form == NameForm::kNone; }
  bool operator==(const OpName&) const = default;
  void AppendTo(std::string* out) const;
  std::string str() const;
  bool IsModule() const { return form == NameForm::kModuleForward || form == NameForm::kModuleBackward; }
};

struct OpNameHash {
  size_t operator()(const OpName& n) const {
    size_t h = std::hash<const void*>()(n.base);
    return (h ^ (static_cast<size_t>(n.index) * 8 + static_cast<size_t>(n.form))) * 0x9e3779b97f4a7c15ull;
  }
};

/// The one copy of a text in this process.
const std::string* InternName(std::string_view text);

}  // namespace msprobe
