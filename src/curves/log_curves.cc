#include "curves/log_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/message.h"
#include "base/text.h"
#include "curves/known_names.h"
#include "curves/line_pattern.h"
#include "curves/number_text.h"

namespace msprobe {
namespace {

using WordList = std::array<std::string_view, 6>;  // empty ones behind

// Of all of them.
constexpr WordList kEvaluationWords{"eval_loss", "val_loss", "val loss", "validation loss", "eval/loss", "val/loss"};

struct LogFormat {
  std::string_view name, must;
  WordList step, loss, grad_norm, learning_rate;
  bool loose;

  const WordList& of(CurveKind kind) const {
    switch (kind) {
      case CurveKind::kLoss: return loss;
      case CurveKind::kGradNorm: return grad_norm;
      case CurveKind::kLearningRate: return learning_rate;
      case CurveKind::kEvalLoss: break;
    }
    return kEvaluationWords;
  }
};

#define LIST(...) \
  { __VA_ARGS__ }
#define MSPROBE_LOG_FORMAT(name, must, step, loss, grad_norm, learning_rate, loose) \
  LogFormat{name, must, step, loss, grad_norm, learning_rate, loose},
constexpr LogFormat kLogFormats[] = {
#include "curves/log_formats.def"
};
#undef MSPROBE_LOG_FORMAT
#undef LIST

bool ContinuesWord(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/' || c == '-';
}

/// The number behind `word`: `word: 1`, `'word': 1`, `word=[1, ...]`, and with `loose` `word 1`.
std::optional<NumberText> FindValue(std::string_view line, std::string_view word, bool loose, size_t* end = nullptr) {
  for (size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    if (at > 0 && ContinuesWord(line[at - 1])) continue;
    size_t next = at + word.size();
    if (next < line.size() && (line[next] == '\'' || line[next] == '"')) ++next;
    const size_t blanks = next;
    while (next < line.size() && line[next] == ' ') ++next;
    const bool separated = next < line.size() && (line[next] == ':' || line[next] == '=');
    if (separated) ++next;
    if (!separated && (!loose || next == blanks)) continue;
    next += SkipToValue(line.substr(next));
    auto number = ReadNumberText(line.substr(next));
    if (!number) continue;
    if (word.ends_with("(1e-3)")) {
      number->value *= 1e-3;
      number->unit *= 1e-3;
    }
    if (end) *end = next + number->size;
    return number;
  }
  return std::nullopt;
}

std::optional<NumberText> FindAny(std::string_view line, const WordList& words, bool loose, size_t* end = nullptr) {
  for (const std::string_view word : words) {
    if (word.empty()) break;
    if (const auto found = FindValue(line, word, loose, end)) return found;
  }
  return std::nullopt;
}

std::optional<int64_t> AsStep(const std::optional<NumberText>& number) {
  if (!number || !(std::fabs(number->value) < 1e15) || number->value != std::floor(number->value)) return std::nullopt;
  return static_cast<int64_t>(number->value);
}

/// MindFormers counts the steps of an epoch: "Epoch:[ 2/ 3], step:[ 10/ 500]" is step 510.
int64_t StepsOfEarlierEpochs(std::string_view line, size_t behind_step) {
  const auto epoch = AsStep(FindValue(line, "Epoch", false));
  std::string_view rest = line.substr(behind_step);
  if (!epoch || *epoch <= 1 || *epoch > 1'000'000 || rest.empty() || rest[0] != '/') return 0;
  rest.remove_prefix(1);
  rest.remove_prefix(SkipToValue(rest));
  const auto steps = AsStep(ReadNumberText(rest));
  return steps && *steps > 0 && *steps < 1'000'000'000 ? (*epoch - 1) * *steps : 0;
}

bool HoldsOneOf(std::string_view line, std::string_view words) {
  for (const std::string_view word : Split(words, '|')) {
    if (line.find(word) != std::string_view::npos) return true;
  }
  return false;
}

/// What reads any log; it comes last.
const LogFormat& GeneralFormat() { return kLogFormats[std::size(kLogFormats) - 1]; }

/// The word before a number in this line, by the format or, of what decides no format, by the general reader.
std::optional<NumberText> FindKind(std::string_view line, const LogFormat& format, CurveKind kind) {
  auto found = FindAny(line, format.of(kind), format.loose);
  const LogFormat& general = GeneralFormat();
  if (!found && kind != CurveKind::kLoss) found = FindAny(line, general.of(kind), general.loose);
  return found;
}

struct FormatRun {
  CurveCollector points;
  std::vector<int64_t> skipped;                   // steps without a loss that the log says were skipped
  int64_t skips = 0;                              // that the log counted
  std::optional<double> first_epoch, last_epoch;  // of lines without a step
  int64_t epochs = 0;
  int64_t last = 0;  // step of the last line that had one, or was counted
  bool counted = false;
};

/// A line of an evaluation: of the step that it names, else of the last one. "validation loss at iteration 100 | lm
/// loss value: 2.5" is Megatron's.
Status TakeEvaluation(std::string_view line, const LogFormat& format, FormatRun* run) {
  auto found = FindAny(line, kEvaluationWords, format.loose);
  if (!found && line.find("validation loss at") != std::string_view::npos)
    found = FindValue(line, "lm loss value", false);
  if (!found) return OkStatus();
  const auto step = AsStep(FindAny(line, format.step, true));
  return run->points.Add(CurveKind::kEvalLoss, step.value_or(run->last), found->value, found->unit);
}

Status TakeLine(std::string_view line, const LogFormat& format, const CurveNames& names, FormatRun* run) {
  if (!HoldsOneOf(line, format.must)) return OkStatus();
  MSP_RETURN_IF_ERROR(TakeEvaluation(line, format, run));
  if (IsRunSummary(line)) return OkStatus();
  std::array<std::optional<NumberText>, kCurveKinds.size()> found;
  bool any = false;
  for (const CurveKind kind : {CurveKind::kLoss, CurveKind::kGradNorm, CurveKind::kLearningRate}) {
    auto& value = found[static_cast<size_t>(kind)];
    const std::string& own = names.of(kind);
    value = own.empty() ? FindKind(line, format, kind) : FindValue(line, own, true);
    any = any || value;
  }
  if (!any) return OkStatus();
  size_t behind = 0;
  auto step = AsStep(FindAny(line, format.step, format.loose, &behind));
  if (step) {
    *step += StepsOfEarlierEpochs(line, behind);
  } else {
    if (!found[0]) return OkStatus();
    step = run->last + 1;
    run->counted = true;
    if (const auto epoch = FindValue(line, "epoch", false)) {
      if (!run->first_epoch) run->first_epoch = epoch->value;
      run->last_epoch = epoch->value;
      ++run->epochs;
    }
  }
  run->last = *step;
  const auto skipped = found[0] ? std::nullopt : FindValue(line, "number of skipped iterations", false);
  if (skipped && skipped->value > 0) run->skipped.push_back(*step);
  const auto counted = FindValue(line, "skipped", false);
  if (counted && counted->value > 0 && counted->value < 1e9) run->skips = static_cast<int64_t>(counted->value);
  for (const CurveKind kind : kCurveKinds) {
    const auto& value = found[static_cast<size_t>(kind)];
    if (value) MSP_RETURN_IF_ERROR(run->points.Add(kind, *step, value->value, value->unit));
  }
  return OkStatus();
}

/// How many lines were logged before the first of this log, by the share of an epoch that a line is: the log of a run
/// that was resumed does not begin with the first step.
int64_t LinesBefore(const FormatRun& run) {
  constexpr double kSure = 0.25;
  if (!run.counted || run.epochs != run.last || run.epochs < 3) return 0;
  const double share = (*run.last_epoch - *run.first_epoch) / static_cast<double>(run.epochs - 1);
  const double number = share > 0 ? *run.first_epoch / share : 0;
  if (!(number < 1e9) || std::fabs(number - std::round(number)) > kSure) return 0;
  return std::max<int64_t>(static_cast<int64_t>(std::round(number)) - 1, 0);
}

/// A scaler of the loss skips some steps until its scale fits. One that skips on and on, or to the end, trains no more:
/// its losses are not numbers.
Status CountSkipped(FormatRun* run, std::vector<Message>* notes) {
  constexpr size_t kFits = 64, kMany = 16;  // skips at the beginning, and later, that a scaler needs at most
  constexpr size_t kNamed = 8;
  const std::vector<int64_t>& steps = run->skipped;
  if (!steps.empty()) {
    std::string named;
    for (size_t i = 0; i < std::min(steps.size(), kNamed); ++i) named += (i > 0 ? ", " : "") + std::to_string(steps[i]);
    notes->push_back(Msg("the log says that {} steps were skipped and updated no weights: {}{}", steps.size(), named,
                         steps.size() > kNamed ? ", ..." : ""));
  } else if (run->skips > 0) {
    notes->push_back(Msg("the log counts {} steps that were skipped and updated no weights", run->skips));
  }
  for (size_t begin = 0, end = 0; begin < steps.size(); begin = end) {
    const int64_t apart = begin + 1 < steps.size() ? std::max<int64_t>(steps[begin + 1] - steps[begin], 1) : 1;
    for (end = begin + 1; end < steps.size() && steps[end] - steps[end - 1] <= apart;) ++end;
    if (end - begin < (steps[begin] <= apart ? kFits : kMany)) continue;
    for (size_t i = begin; i < end; ++i) {
      MSP_RETURN_IF_ERROR(run->points.Add(CurveKind::kLoss, steps[i], std::numeric_limits<double>::quiet_NaN(), 0));
    }
    notes->push_back(Msg("the steps from {} to {} were skipped and have no loss, which counts as NaN", steps[begin],
                         steps[end - 1]));
  }
  return OkStatus();
}

/// The line without the colours of terminals.
std::string_view WithoutColours(std::string_view line, std::string* room) {
  if (line.find('\x1b') == std::string_view::npos) return line;
  room->clear();
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      *room += line[i];
      continue;
    }
    while (i + 1 < line.size() && line[i] != 'm') ++i;
  }
  return *room;
}

template <typename Take>
Status ForEachLine(std::string_view log, const Take& take) {
  std::string room;
  while (!log.empty()) {
    const size_t end = std::min(log.find_first_of("\n\r"), log.size());
    MSP_RETURN_IF_ERROR(take(WithoutColours(log.substr(0, std::min(end, kMaxLogLine)), &room)));
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  return OkStatus();
}

StatusOr<RunCurves> ReadByPattern(std::string_view log, const std::string& path, const std::string& text) {
  MSP_ASSIGN_OR_RETURN(const LinePattern pattern, LinePattern::Parse(text));
  FormatRun run;
  const auto take = [&](std::string_view line) -> Status {
    const auto match = pattern.Find(line);
    if (!match) return OkStatus();
    const auto value = [&](LinePattern::Field field) { return (*match)[static_cast<size_t>(field)]; };
    auto step = AsStep(value(LinePattern::Field::kStep));
    run.counted = run.counted || !step;
    run.last = step.value_or(run.last + 1);
    for (const auto& [kind, field] : {std::pair{CurveKind::kLoss, LinePattern::Field::kLoss},
                                      {CurveKind::kGradNorm, LinePattern::Field::kGradNorm},
                                      {CurveKind::kLearningRate, LinePattern::Field::kLearningRate}}) {
      if (const auto number = value(field)) {
        MSP_RETURN_IF_ERROR(run.points.Add(kind, run.last, number->value, number->unit));
      }
    }
    return OkStatus();
  };
  MSP_RETURN_IF_ERROR(ForEachLine(log, take));
  if (run.points.count(CurveKind::kLoss) + run.points.count(CurveKind::kGradNorm) == 0) {
    return BadInput(Msg("{} has no line like --pattern '{}': compare the pattern with a line of the log", OneLine(path),
                        OneLine(text)));
  }
  RunCurves out{path, "log by --pattern", {}, {}};
  if (run.counted) out.notes.emplace_back(Msg("lines without a step are counted 1, 2, ..."));
  run.points.Finish(&out);
  return out;
}

}  // namespace

StatusOr<RunCurves> ReadLogCurves(std::string_view log, const std::string& path, const CurveNames& names) {
  if (!names.pattern.empty()) return ReadByPattern(log, path, names.pattern);
  std::array<FormatRun, std::size(kLogFormats)> runs;
  const auto take = [&](std::string_view line) -> Status {
    for (size_t i = 0; i < runs.size(); ++i) MSP_RETURN_IF_ERROR(TakeLine(line, kLogFormats[i], names, &runs[i]));
    return OkStatus();
  };
  MSP_RETURN_IF_ERROR(ForEachLine(log, take));
  const auto losses = [&](size_t i) {
    const size_t count = runs[i].points.count(CurveKind::kLoss);
    return std::pair(count, count > 0 && !runs[i].counted);
  };
  size_t best = 0;
  for (size_t i = 1; i < runs.size(); ++i) {
    if (losses(i) > losses(best)) best = i;
  }
  if (losses(best).first == 0) {
    return BadInput(
        Msg("{} holds no loss that is known: name the words before the numbers with --loss, or a line with --pattern "
            "'step {{step}} loss {{loss}}'",
            OneLine(path)));
  }
  RunCurves out{path, fmt::format("log of {}", kLogFormats[best].name), {}, {}};
  const int64_t before = LinesBefore(runs[best]);
  if (before > 0) {
    out.notes.push_back(Msg("lines without a step are counted from {} on, by their epochs", before + 1));
    runs[best].points.Shift(before);
  } else if (runs[best].counted) {
    out.notes.emplace_back(Msg("lines without a step are counted 1, 2, ..."));
  }
  MSP_RETURN_IF_ERROR(CountSkipped(&runs[best], &out.notes));
  runs[best].points.Finish(&out);
  return out;
}

}  // namespace msprobe
