#include "curves/known_names.h"

#include <algorithm>
#include <array>
#include <span>

namespace msprobe {
namespace {

// Spelled as Plain() leaves them; the first that is there counts.
constexpr std::array<std::string_view, 12> kLoss{
    "lm loss",    "train/loss",        "loss",          "train loss",       "loss/train",
    "actor/loss", "actor/pg loss",     "training loss", "train/train loss", "loss metrics/global avg loss",
    "total loss", "reduced train loss"};
constexpr std::array<std::string_view, 8> kGradNorm{"grad norm",        "train/grad norm", "actor/grad norm",
                                                    "global norm",      "gradient norm",   "gnorm",
                                                    "global grad norm", "gradnorm"};
constexpr std::array<std::string_view, 8> kLearningRate{
    "learning rate", "train/learning rate", "lr", "train/lr", "actor/lr", "lr/train", "lr-adamw", "train/lr(1e 3)"};
constexpr std::array<std::string_view, 6> kStep{"step", "global step", "iteration",
                                                "iter", "steps",       "train/global step"};

/// In lower case, '_' and '-' as blanks.
std::string Plain(std::string_view name) {
  std::string out;
  for (char c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    out += c == '_' || c == '-' ? ' ' : c;
  }
  return out;
}

int FindFirst(const std::vector<std::string>& names, std::span<const std::string_view> known) {
  for (const std::string_view wanted : known) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (Plain(names[i]) == wanted) return static_cast<int>(i);
    }
  }
  return -1;
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
    case CurveKind::kLoss: return FindFirst(names, kLoss);
    case CurveKind::kGradNorm: return FindFirst(names, kGradNorm);
    case CurveKind::kLearningRate: return FindFirst(names, kLearningRate);
  }
  return -1;
}

bool IsRunSummary(std::string_view text) {
  constexpr std::array<std::string_view, 5> kWords{"train_runtime", "train_samples_per_second",
                                                   "train_steps_per_second", "total_flos", "eval_runtime"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [text](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

int FindStepName(const std::vector<std::string>& names) { return FindFirst(names, kStep); }

}  // namespace msprobe
