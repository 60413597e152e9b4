#include "serve/request_target.h"

#include <fmt/core.h>

#include <charconv>
#include <utility>

namespace msprobe::serve {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

StatusOr<std::string> Decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
      if (high < 0 || low < 0)
        return UsageError("the address holds a malformed % escape: write a per cent sign as %25");
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

}  // namespace

std::string_view RequestTarget::Get(std::string_view name) const {
  const auto it = parameters.find(name);
  return it == parameters.end() ? std::string_view() : std::string_view(it->second);
}

StatusOr<int64_t> RequestTarget::Int(std::string_view name, const int64_t* fallback) const {
  const std::string_view text = Get(name);
  if (text.empty() && fallback != nullptr) return *fallback;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return UsageError(fmt::format("{} is not an integer: give {}=N", name, name));
  }
  return value;
}

StatusOr<RequestTarget> ParseTarget(std::string_view target) {
  if (target.empty() || target[0] != '/') return UsageError("the request is not for a path: ask for / or /api/...");
  target = target.substr(0, target.find('#'));
  const size_t mark = target.find('?');
  RequestTarget out;
  MSP_ASSIGN_OR_RETURN(out.path, Decode(target.substr(0, mark), false));
  std::string_view rest = mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
  while (!rest.empty()) {
    const size_t end = rest.find('&');
    const std::string_view pair = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    MSP_ASSIGN_OR_RETURN(std::string key, Decode(pair.substr(0, equals), true));
    MSP_ASSIGN_OR_RETURN(std::string value,
                         Decode(equals == std::string_view::npos ? "" : pair.substr(equals + 1), true));
    if (!out.parameters.emplace(std::move(key), std::move(value)).second) {
      return UsageError("a parameter is given twice: give each once");
    }
  }
  return out;
}

}  // namespace msprobe::serve
