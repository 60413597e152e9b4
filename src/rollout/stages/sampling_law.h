// How a program makes log-probabilities of logits, and which way explains those that it recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/message.h"
#include "rollout/evidence.h"

namespace msprobe {

struct SamplingLaw {
  double temperature = 1;  // divides the logits
  double after = 1;        // divides the log-probability
  int64_t top_k = 0;       // 0: all words
  double top_p = 1, min_p = 0;

  bool IsRaw() const { return temperature == 1 && after == 1 && top_k == 0 && top_p == 1 && min_p == 0; }
  bool operator==(const SamplingLaw&) const = default;
  /// For programs: "raw", "temperature", "top_p", ...
  std::string Kind() const;
  /// "of logits divided by 0.7, over the words that make up 0.9 (top-p)".
  Message Words() const;
};

/// A token, the logits that its probability comes from, and what was recorded.
struct SamplingToken {
  std::span<const float> logits;
  int64_t token = 0;
  double recorded = 0;
};

/// Log-probability of the token; minus infinity for one that the law leaves out.
double LogProbability(const SamplingLaw& law, std::span<const float> logits, int64_t token);

struct LawFit {
  SamplingLaw law;
  double residual = 0, raw_residual = 0;  // root mean square, in nats
  double spread = 0;                      // standard deviation of what was recorded
  bool within_rounding = false;
  bool explains = false;  // within rounding, or most of what the raw logits leave
};

/// What a law leaves of what was recorded: root mean square, in nats.
double ResidualOf(const SamplingLaw& law, const std::vector<SamplingToken>& tokens);

/// How much more likely one law makes what was recorded than another does, as a logarithm: both leave normal errors.
double PreferenceOf(const SamplingLaw& law, const SamplingLaw& other, const std::vector<SamplingToken>& tokens);

/// The simplest way that explains what was recorded. `hints`: what the program was told, with which the fit begins.
LawFit FitLaw(const std::vector<SamplingToken>& tokens, const SamplingSettings& hints);

}  // namespace msprobe
