// Requests of both sides, paired, and the gap between their log-probabilities.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rollout/evidence.h"

namespace msprobe {

/// A request of each side; null where a side has none.
struct RequestPair {
  const RolloutRequest *train = nullptr, *rollout = nullptr;
  /// What has the ids: the trainer's where both have them.
  const RolloutRequest& either() const { return train ? *train : *rollout; }
};

enum class PairedBy : uint8_t { kNothing, kId, kTokens, kPrompt, kOrder };

struct RequestPairs {
  std::vector<RequestPair> pairs;
  PairedBy by = PairedBy::kNothing;
  size_t only_train = 0, only_rollout = 0;
};

/// By their names, else by their ids, else by prompt and order. Requests of one side alone are pairs of one.
RequestPairs PairRequests(const std::optional<RolloutRecords>& train, const std::optional<RolloutRecords>& rollout);

/// What both sides say of the tokens of a response; empty where one says nothing, or where the tokens are not the same.
struct PairGap {
  std::vector<double> train, rollout;
  std::vector<uint8_t> counted;  // the loss counts the token, and both are finite
};
/// As the records call it, else by its place among them.
std::string RequestName(const RolloutRequest& request, size_t index);

PairGap GapOf(const RequestPair& pair);

/// Of all counted tokens.
std::vector<TokenGap> GapsOf(const RequestPairs& pairs);

/// Requests of which both sides have log-probabilities, but of other tokens: no gap can be made of them.
struct RequestsLeftOut {
  size_t requests = 0, tokens = 0;
};
RequestsLeftOut LeftOutOf(const RequestPairs& pairs);

/// exp(r) - r - 1 with r = train - rollout: what the token adds to the KL of the rollout's policy against the
/// trainer's.
double K3(const TokenGap& gap);
/// Its mean; nothing without tokens.
std::optional<double> MeanK3(const std::vector<TokenGap>& gaps);

}  // namespace msprobe
