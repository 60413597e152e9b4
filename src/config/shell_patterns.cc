#include "config/shell_patterns.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "config/value.h"

namespace msprobe {
namespace {

constexpr size_t kLongestChanged = 4096, kLongestPattern = 64;

std::optional<int64_t> Whole(const std::string& text) {
  const ConfigValue value = PythonScalar(text);
  return value.kind == ConfigValue::Kind::kInt ? std::optional(value.integer) : std::nullopt;
}

/// ${name#pattern}, ##, % and %%: without the shortest, or longest, beginning or end that is like the pattern.
std::string_view TrimmedBy(std::string_view text, std::string_view rest) {
  const char side = rest[0];
  const bool longest = rest.size() > 1 && rest[1] == side;
  const std::string_view pattern = rest.substr(longest ? 2 : 1);
  for (size_t n = 0; n <= text.size(); ++n) {
    const size_t size = longest ? text.size() - n : n;
    const std::string_view part = side == '#' ? text.substr(0, size) : text.substr(text.size() - size);
    if (MatchesWildcard(part, pattern)) return side == '#' ? text.substr(size) : text.substr(0, text.size() - size);
  }
  return text;
}

/// /from/to, //from/to: the first, or each.
std::string ReplacedBy(std::string_view text, std::string_view rest) {
  const bool each = StartsWith(rest, "//");
  rest.remove_prefix(each ? 2 : 1);
  const size_t slash = rest.find('/');
  const std::string_view from = rest.substr(0, slash),
                         to = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
  std::string out(text);
  for (size_t at = 0; !from.empty() && (at = out.find(from, at)) != std::string::npos; at += to.size()) {
    out.replace(at, from.size(), to);
    if (!each || out.size() > kLongestChanged) break;
  }
  return out;
}

/// ^^ and ,, of all, ^ and , of the first letter.
std::string InCase(std::string_view text, std::string_view rest) {
  std::string out(text);
  const size_t size = rest.size() > 1 ? out.size() : std::min<size_t>(1, out.size());
  for (size_t i = 0; i < size; ++i) {
    const auto letter = static_cast<unsigned char>(out[i]);
    out[i] = static_cast<char>(rest[0] == '^' ? std::toupper(letter) : std::tolower(letter));
  }
  return out;
}

/// :from and :from:size.
std::optional<std::string> PartOf(std::string_view text, std::string_view rest) {
  rest.remove_prefix(1);
  const size_t colon = rest.find(':');
  const bool sized = colon != std::string_view::npos;
  const std::optional<int64_t> from = Whole(std::string(rest.substr(0, colon)));
  const std::optional<int64_t> size = sized ? Whole(std::string(rest.substr(colon + 1))) : std::nullopt;
  if (!from || *from < 0 || *from > static_cast<int64_t>(text.size())) return std::nullopt;
  if (sized && (!size || *size < 0)) return std::nullopt;
  return std::string(
      text.substr(static_cast<size_t>(*from), size ? static_cast<size_t>(*size) : std::string_view::npos));
}

}  // namespace

std::optional<bool> TestHolds(const std::string& a, const std::string& op, const std::string& b) {
  if (op == "=" || op == "==" || op == "!=") {
    if (a.size() > kLongestChanged || b.size() > kLongestChanged) return std::nullopt;
    return MatchesWildcard(a, b) == (op != "!=");
  }
  const std::optional<int64_t> x = Whole(a), y = Whole(b);
  if (!x || !y) return std::nullopt;
  if (op == "-eq") return *x == *y;
  if (op == "-ne") return *x != *y;
  if (op == "-lt") return *x < *y;
  if (op == "-le") return *x <= *y;
  if (op == "-gt") return *x > *y;
  if (op == "-ge") return *x >= *y;
  return std::nullopt;
}

std::optional<std::string> ChangedBy(std::string_view text, std::string_view operation) {
  if (operation.empty() || text.size() > kLongestChanged) return std::nullopt;
  switch (operation[0]) {
    case '#':
    case '%':
      if (operation.size() > kLongestPattern) return std::nullopt;
      return std::string(TrimmedBy(text, operation));
    case '/': return ReplacedBy(text, operation);
    case '^':
    case ',': return InCase(text, operation);
    case ':': return PartOf(text, operation);
    default: return std::nullopt;
  }
}

bool IsOpen(std::string_view word) { return Contains(word, "$") || Contains(word, "`"); }

std::optional<bool> ConditionHolds(std::vector<std::string> words) {
  bool negated = false;
  if (!words.empty() && words[0] == "!") {
    negated = true;
    words.erase(words.begin());
  }
  for (const std::string& word : words) {
    if (IsOpen(word)) return std::nullopt;
  }
  std::optional<bool> out;
  if (words.size() == 2 && (words[0] == "-z" || words[0] == "-n")) {
    out = words[1].empty() == (words[0] == "-z");
  } else if (words.size() == 3) {
    out = TestHolds(words[0], words[1], words[2]);
  }
  return out && negated ? std::optional(!*out) : out;
}

SlurmJob SlurmJobOf(std::string_view text) {
  constexpr std::string_view kSign = "#SBATCH";
  constexpr int kMost = 1 << 20;
  SlurmJob out;
  int tasks = 0;
  for (std::string_view line : Split(text, '\n')) {
    if (!StartsWith(line, kSign)) continue;
    line = Trimmed(line.substr(kSign.size()));
    const size_t end = line.find_first_of("= ");
    const std::string_view option = line.substr(0, end);
    const std::string_view value = end == std::string_view::npos ? "" : Trimmed(line.substr(end + 1));
    const std::string_view last = value.substr(value.rfind(':') == std::string_view::npos ? 0 : value.rfind(':') + 1);
    int number = 0;
    for (const char c : last.substr(0, last.find_first_not_of("0123456789"))) {
      number = std::min(kMost, number * 10 + (c - '0'));
    }
    if (option == "--nodes" || option == "-N") out.nodes = number;
    if (option == "--ntasks-per-node" || option == "--tasks-per-node") out.tasks_per_node = number;
    if (option == "--ntasks" || option == "-n") tasks = number;
    if (option == "--gpus-per-node" || (option == "--gres" && StartsWith(value, "gpu"))) out.gpus_per_node = number;
  }
  if (out.nodes == 0 && (tasks > 0 || out.tasks_per_node > 0)) out.nodes = 1;
  if (out.tasks_per_node == 0 && tasks > 0) out.tasks_per_node = tasks / out.nodes;
  return out;
}

}  // namespace msprobe
