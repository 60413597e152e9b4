#include "doctor/training_log.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace msprobe {
namespace {

constexpr size_t kMostSteps = 10'000'000, kLongestLine = 4096;

char Small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
bool IsWordPart(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '/' || c == '.'; }

/// `line` from `at` on: a number, and what it is worth in its last digit.
std::optional<LoggedNumber> NumberAt(std::string_view line, size_t at, size_t* end) {
  while (at < line.size() && (line[at] == ' ' || line[at] == '\t' || line[at] == '[' || line[at] == '\'' ||
                              line[at] == '"' || line[at] == '(' || line[at] == '+')) {
    ++at;
  }
  LoggedNumber out;
  const auto [stop, error] = std::from_chars(line.data() + at, line.data() + line.size(), out.value);
  if (error != std::errc() || stop == line.data() + at) return std::nullopt;
  const std::string_view text = line.substr(at, static_cast<size_t>(stop - line.data()) - at);
  const size_t exponent = text.find_first_of("eE");
  const std::string_view digits = text.substr(0, exponent);
  const size_t point = digits.find('.');
  double place = point == std::string_view::npos ? 0 : -static_cast<double>(digits.size() - point - 1);
  if (exponent != std::string_view::npos) {
    int power = 0;
    std::string_view rest = text.substr(exponent + 1);
    if (StartsWith(rest, "+")) rest.remove_prefix(1);
    std::from_chars(rest.data(), rest.data() + rest.size(), power);
    place += power;
  }
  out.half_digit = 0.5 * std::pow(10.0, place);
  *end = static_cast<size_t>(stop - line.data());
  return out;
}

/// The number behind one of `names`, which stand as words of their own: "loss: 3.9", "'loss': 3.9", "loss=3.9", "loss
/// 3.9". The first name that has one counts.
template <size_t N>
std::optional<LoggedNumber> NumberBehindName(std::string_view line, const std::string& small,
                                             const std::array<std::string_view, N>& names) {
  for (const std::string_view name : names) {
    for (size_t at = small.find(name); at != std::string::npos; at = small.find(name, at + 1)) {
      if (at > 0 && IsWordPart(small[at - 1])) continue;
      size_t behind = at + name.size();
      if (behind < small.size() && (small[behind] == '\'' || small[behind] == '"')) ++behind;
      while (behind < small.size() && small[behind] == ' ') ++behind;
      const bool sign = behind < small.size() && (small[behind] == ':' || small[behind] == '=');
      if (sign) ++behind;
      if (!sign && (behind == at + name.size() || behind >= small.size())) continue;
      size_t end = 0;
      if (const auto number = NumberAt(line, behind, &end)) return number;
    }
  }
  return std::nullopt;
}

constexpr std::array<std::string_view, 6> kLoss{"lm loss", "train_loss", "train/loss", "loss", "actor/pg_loss", "nll"};
constexpr std::array<std::string_view, 6> kNorm{"grad norm",   "grad_norm",       "global_norm",
                                                "global norm", "train/grad_norm", "actor/grad_norm"};
constexpr std::array<std::string_view, 5> kRate{"learning rate", "learning_rate", "lr", "actor/lr",
                                                "train/learning_rate"};
constexpr std::array<std::string_view, 5> kStep{"global_step", "iteration", "step", "iter", "steps"};

std::optional<LoggedStep> StepOf(std::string_view line) {
  if (line.size() > kLongestLine) line = line.substr(0, kLongestLine);
  std::string small(line);
  std::transform(small.begin(), small.end(), small.begin(), Small);
  const auto loss = NumberBehindName(line, small, kLoss);
  if (!loss) return std::nullopt;
  LoggedStep out;
  out.loss = *loss;
  out.gradient_norm = NumberBehindName(line, small, kNorm);
  out.learning_rate = NumberBehindName(line, small, kRate);
  if (const auto step = NumberBehindName(line, small, kStep); step && std::abs(step->value) < 1e15) {
    out.number = static_cast<int64_t>(step->value);
  }
  return out;
}

std::vector<std::string_view> CsvCells(std::string_view line) {
  if (EndsWith(line, "\r")) line.remove_suffix(1);
  return Split(line, ',');
}

/// A table with a head that names the columns.
bool ReadCsv(std::string_view text, TrainingLog* out) {
  const size_t end = std::min(text.find('\n'), text.size());
  if (end > kLongestLine || text.find(',') > end) return false;
  std::array<int, 4> column{-1, -1, -1, -1};
  const std::vector<std::string_view> head = CsvCells(text.substr(0, end));
  for (size_t i = 0; i < head.size(); ++i) {
    std::string name(head[i]);
    std::transform(name.begin(), name.end(), name.begin(), Small);
    const auto in = [&](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
    if (in(kLoss) && column[0] < 0) column[0] = static_cast<int>(i);
    if (in(kNorm)) column[1] = static_cast<int>(i);
    if (in(kRate)) column[2] = static_cast<int>(i);
    if (in(kStep)) column[3] = static_cast<int>(i);
  }
  if (column[0] < 0) return false;
  for (const std::string_view line : Split(text.substr(std::min(end + 1, text.size())), '\n')) {
    const std::vector<std::string_view> cells = CsvCells(line);
    const auto number = [&](int at) -> std::optional<LoggedNumber> {
      size_t stop = 0;
      if (at < 0 || static_cast<size_t>(at) >= cells.size()) return std::nullopt;
      return NumberAt(cells[static_cast<size_t>(at)], 0, &stop);
    };
    const auto loss = number(column[0]);
    if (!loss || out->steps.size() >= kMostSteps) continue;
    LoggedStep step{-1, *loss, number(column[1]), number(column[2])};
    if (const auto at = number(column[3])) step.number = static_cast<int64_t>(at->value);
    out->steps.push_back(step);
  }
  return true;
}

/// Numbers where none are printed; sorted, the last of those with one number. Numbers that never grow are none.
void NumberSteps(std::vector<LoggedStep>* steps) {
  const bool numbered = std::any_of(steps->begin(), steps->end(), [](const LoggedStep& s) { return s.number >= 0; });
  const bool constant = steps->size() > 1 && std::all_of(steps->begin(), steps->end(), [&](const LoggedStep& s) {
                          return s.number == steps->front().number;
                        });
  if (!numbered || constant) {
    for (size_t i = 0; i < steps->size(); ++i) (*steps)[i].number = static_cast<int64_t>(i) + 1;
    return;
  }
  std::erase_if(*steps, [](const LoggedStep& s) { return s.number < 0; });  // an average at the end
  std::stable_sort(steps->begin(), steps->end(),
                   [](const LoggedStep& a, const LoggedStep& b) { return a.number < b.number; });
  std::vector<LoggedStep> last;
  for (const LoggedStep& step : *steps) {
    if (!last.empty() && last.back().number == step.number)
      last.back() = step;
    else
      last.push_back(step);
  }
  *steps = std::move(last);
}

}  // namespace

TrainingLog ReadTrainingLog(std::string_view text, const std::string& path) {
  TrainingLog out;
  out.path = path;
  text = text.substr(0, kMostLogBytes);
  if (!ReadCsv(text, &out)) {
    for (size_t at = 0; at < text.size() && out.steps.size() < kMostSteps;) {
      const size_t end = std::min(text.find('\n', at), text.size());
      if (const auto step = StepOf(text.substr(at, end - at))) out.steps.push_back(*step);
      at = end + 1;
    }
  }
  NumberSteps(&out.steps);
  return out;
}

}  // namespace msprobe
