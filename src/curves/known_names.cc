#include "curves/known_names.h"

#include <algorithm>
#include <array>
#include <span>

namespace msprobe {
namespace {

// Spelled as Plain() leaves them; the first that is there counts.
constexpr std::array<std::string_view, 17> kLoss{"lm loss",
                                                 "train/loss",
                                                 "loss",
                                                 "train loss",
                                                 "loss/train",
                                                 "actor/loss",
                                                 "actor/pg loss",
                                                 "training loss",
                                                 "train/train loss",
                                                 "loss metrics/global avg loss",
                                                 "total loss",
                                                 "loss step",
                                                 "train/loss step",
                                                 "reduced train loss",
                                                 "train loss step",
                                                 "training/loss",
                                                 "step loss"};
constexpr std::array<std::string_view, 10> kGradNorm{
    "grad norm", "train/grad norm",  "actor/grad norm", "global norm",         "gradient norm",
    "gnorm",     "global grad norm", "gradnorm",        "grad 2.0 norm total", "grad norm total"};
constexpr std::array<std::string_view, 8> kLearningRate{
    "learning rate", "train/learning rate", "lr", "train/lr", "actor/lr", "lr/train", "lr step", "train/lr(1e 3)"};
constexpr std::array<std::string_view, 14> kEvalLoss{
    "eval loss", "eval/loss",       "val loss",   "val/loss",   "validation loss", "validation/loss", "loss/val",
    "loss/eval", "loss/validation", "valid loss", "valid/loss", "dev loss",        "val lm loss",     "test loss"};
constexpr std::array<std::string_view, 6> kStep{"step", "global step", "iteration",
                                                "iter", "steps",       "train/global step"};

constexpr std::string_view kRunMark = " - ";  // wandb: "NAME OF THE RUN - train/loss"

std::string_view RunOf(std::string_view name) {
  const size_t mark = name.rfind(kRunMark);
  return mark == std::string_view::npos ? std::string_view() : name.substr(0, mark);
}

/// In lower case, '_' and '-' as blanks, without the name of a run.
std::string Plain(std::string_view name) {
  if (const size_t mark = name.rfind(kRunMark); mark != std::string_view::npos) {
    name.remove_prefix(mark + kRunMark.size());
  }
  std::string out;
  for (char c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    out += c == '_' || c == '-' ? ' ' : c;
  }
  const size_t begin = out.find_first_not_of(' ');
  return begin == std::string::npos ? std::string() : out.substr(begin, out.find_last_not_of(' ') + 1 - begin);
}

/// The least and the most of what wandb drew as one point.
bool IsBound(std::string_view name) { return name.ends_with("__MIN") || name.ends_with("__MAX"); }

/// The first of the names; -1 also where several runs have it.
int FindFirst(const std::vector<std::string>& names, std::span<const std::string_view> known) {
  for (const std::string_view wanted : known) {
    int found = -1;
    for (size_t i = 0; i < names.size(); ++i) {
      if (IsBound(names[i]) || Plain(names[i]) != wanted) continue;
      if (found >= 0 && RunOf(names[i]) != RunOf(names[static_cast<size_t>(found)])) return -1;
      if (found < 0) found = static_cast<int>(i);
    }
    if (found >= 0) return found;
  }
  return -1;
}

std::vector<std::string> WordsOf(const std::string& plain) {
  std::vector<std::string> out{""};
  for (const char c : plain) {
    if (c == ' ' || c == '/' || c == '.' || c == ':' || c == '(' || c == ')') {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

/// Whether a name that is not known can only mean the quantity: its words say it, and none says another one.
bool CanMean(const std::string& name, CurveKind kind) {
  constexpr std::array<std::string_view, 18> kOthers{"val",   "valid", "validation", "eval",      "test",  "dev",
                                                     "scale", "aux",   "min",        "max",       "time",  "timestamp",
                                                     "best",  "epoch", "std",        "balancing", "ratio", "z"};
  constexpr int64_t kEvaluations = 6;
  if (IsBound(name)) return false;
  const std::vector<std::string> words = WordsOf(Plain(name));
  const auto has = [&](std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  const auto other = std::find_if(kOthers.begin(), kOthers.end(), has);
  if (kind == CurveKind::kEvalLoss) {  // the first words, and none of the rest
    return other < kOthers.begin() + kEvaluations && has("loss") &&
           std::none_of(kOthers.begin() + kEvaluations, kOthers.end(), has);
  }
  if (other != kOthers.end()) return false;
  switch (kind) {
    case CurveKind::kLoss: return has("loss");
    case CurveKind::kGradNorm: return has("norm") && (has("grad") || has("gradient"));
    case CurveKind::kLearningRate: return has("lr") || (has("learning") && has("rate"));
    case CurveKind::kEvalLoss: break;
  }
  return false;
}

/// The only one that can mean it; of groups of one optimizer, which Lightning names "lr-AdamW/pg1", the first.
int FindOnly(const std::vector<std::string>& names, CurveKind kind) {
  int found = -1;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!CanMean(names[i], kind)) continue;
    if (found < 0) {
      found = static_cast<int>(i);
      continue;
    }
    const std::string& first = names[static_cast<size_t>(found)];
    const size_t group = first.rfind("/pg");
    if (group == std::string::npos || names[i].compare(0, group, first, 0, group) != 0) return -1;
  }
  return found;
}

int KnownOrOnly(const std::vector<std::string>& names, std::span<const std::string_view> known, CurveKind kind) {
  const int found = FindFirst(names, known);
  return found >= 0 ? found : FindOnly(names, kind);
}

}  // namespace

int FindCurveName(const std::vector<std::string>& names, CurveKind kind, const CurveNames& own) {
  if (const std::string& wanted = own.of(kind); !wanted.empty()) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == wanted) return static_cast<int>(i);
    }
    return -1;
  }
  switch (kind) {
    case CurveKind::kLoss: return KnownOrOnly(names, kLoss, kind);
    case CurveKind::kGradNorm: return KnownOrOnly(names, kGradNorm, kind);
    case CurveKind::kLearningRate: return KnownOrOnly(names, kLearningRate, kind);
    case CurveKind::kEvalLoss: return KnownOrOnly(names, kEvalLoss, kind);
  }
  return -1;
}

bool IsRunSummary(std::string_view text) {
  constexpr std::array<std::string_view, 5> kWords{"train_runtime", "train_samples_per_second",
                                                   "train_steps_per_second", "total_flos", "eval_runtime"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [text](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

bool IsOfMachines(std::string_view name) {
  constexpr std::array<std::string_view, 22> kWords{
      "time",      "runtime",  "epoch",    "second",     "seconds", "flos", "memory", "wall",
      "timestamp", "tokens",   "samples",  "throughput", "tps",     "mfu",  "step",   "steps",
      "iteration", "consumed", "duration", "gpu",        "system",  "seen"};
  const std::vector<std::string> words = WordsOf(Plain(name));
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); });
}

int FindStepName(const std::vector<std::string>& names) { return FindFirst(names, kStep); }

}  // namespace msprobe
