#include "rollout/gap.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace msprobe {
namespace {

std::vector<int64_t> PromptOf(const RolloutRequest& request) {
  return {request.tokens.begin(), request.tokens.begin() + static_cast<ptrdiff_t>(request.prompt)};
}

/// Who is whose partner, and who has none yet.
class PartnerFinder {
 public:
  PartnerFinder(const std::vector<RolloutRequest>& train, const std::vector<RolloutRequest>& rollout)
      : train_(train), rollout_(rollout), partner_(train.size(), rollout.size()), used_(rollout.size()) {}

  /// Pairs what has no partner yet and equal keys, those of one key in their order. True where it paired any.
  template <typename Key>
  bool ByKey(const Key& key) {
    std::map<decltype(key(train_[0])), std::vector<size_t>> places;
    for (size_t i = rollout_.size(); i-- > 0;) {
      if (!used_[i]) places[key(rollout_[i])].push_back(i);
    }
    bool any = false;
    for (size_t i = 0; i < train_.size(); ++i) {
      if (partner_[i] < rollout_.size()) continue;
      const auto found = places.find(key(train_[i]));
      if (found == places.end() || found->second.empty()) continue;
      Pair(i, found->second.back());
      found->second.pop_back();
      any = true;
    }
    return any;
  }

  /// The rest in its order, where both sides have as many left.
  bool ByOrder() {
    std::vector<size_t> left;
    for (size_t i = 0; i < used_.size(); ++i) {
      if (!used_[i]) left.push_back(i);
    }
    if (left.empty() || left.size() != Left()) return false;
    size_t next = 0;
    for (size_t i = 0; i < train_.size(); ++i) {
      if (partner_[i] == rollout_.size()) Pair(i, left[next++]);
    }
    return true;
  }

  /// Requests of the trainer without a partner.
  size_t Left() const { return static_cast<size_t>(std::count(partner_.begin(), partner_.end(), rollout_.size())); }
  const std::vector<size_t>& partner() const { return partner_; }

 private:
  void Pair(size_t train, size_t rollout) {
    partner_[train] = rollout;
    used_[rollout] = true;
  }
  const std::vector<RolloutRequest>&train_, &rollout_;
  std::vector<size_t> partner_;
  std::vector<bool> used_;
};

bool HaveNames(const std::vector<RolloutRequest>& requests) {
  std::set<std::string_view> names;
  return std::all_of(requests.begin(), requests.end(),
                     [&](const RolloutRequest& r) { return !r.id.empty() && names.insert(r.id).second; });
}
bool HaveTokens(const std::vector<RolloutRequest>& requests) {
  return std::all_of(requests.begin(), requests.end(), [](const RolloutRequest& r) { return !r.tokens.empty(); });
}

PairedBy FindPartners(const std::vector<RolloutRequest>& train, const std::vector<RolloutRequest>& rollout,
                      std::vector<size_t>* partner) {
  PartnerFinder finder(train, rollout);
  PairedBy by = PairedBy::kNothing;
  if (HaveNames(train) && HaveNames(rollout) && finder.ByKey([](const RolloutRequest& r) { return r.id; })) {
    by = PairedBy::kId;
  } else {
    if (HaveTokens(train) && HaveTokens(rollout)) {
      if (finder.ByKey([](const RolloutRequest& r) { return r.tokens; })) by = PairedBy::kTokens;
      if (finder.Left() > 0 && finder.ByKey(PromptOf)) by = PairedBy::kPrompt;
    }
    if (finder.Left() > 0 && finder.ByOrder()) by = PairedBy::kOrder;
  }
  *partner = finder.partner();
  return by;
}

}  // namespace

RequestPairs PairRequests(const std::optional<RolloutRecords>& train, const std::optional<RolloutRecords>& rollout) {
  RequestPairs out;
  if (!train || !rollout) {
    if (train) {
      for (const RolloutRequest& request : train->requests) out.pairs.push_back({&request, nullptr});
    } else if (rollout) {
      for (const RolloutRequest& request : rollout->requests) out.pairs.push_back({nullptr, &request});
    }
    return out;
  }
  std::vector<size_t> partner;
  out.by = FindPartners(train->requests, rollout->requests, &partner);
  std::vector<bool> used(rollout->requests.size());
  for (size_t i = 0; i < partner.size(); ++i) {
    const bool has = partner[i] < rollout->requests.size();
    if (has) used[partner[i]] = true;
    out.only_train += !has;
    out.pairs.push_back({&train->requests[i], has ? &rollout->requests[partner[i]] : nullptr});
  }
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    ++out.only_rollout;
    out.pairs.push_back({nullptr, &rollout->requests[i]});
  }
  return out;
}

std::string RequestName(const RolloutRequest& request, size_t index) {
  return request.id.empty() ? "#" + std::to_string(index) : request.id;
}

namespace {

bool HaveSameTokens(const RequestPair& pair) {
  return !pair.train || !pair.rollout || pair.train->tokens.empty() || pair.rollout->tokens.empty() ||
         (pair.train->tokens == pair.rollout->tokens && pair.train->prompt == pair.rollout->prompt);
}

}  // namespace

RequestsLeftOut LeftOutOf(const RequestPairs& pairs) {
  RequestsLeftOut out;
  for (const RequestPair& pair : pairs.pairs) {
    if (HaveSameTokens(pair) || pair.train->train_logprobs.empty() || pair.rollout->rollout_logprobs.empty()) continue;
    const RolloutRequest& engine = *pair.rollout;
    const bool masked = engine.response_mask.size() == engine.rollout_logprobs.size();
    ++out.requests;
    out.tokens += masked ? static_cast<size_t>(std::count_if(engine.response_mask.begin(), engine.response_mask.end(),
                                                             [](uint8_t m) { return m != 0; }))
                         : engine.rollout_logprobs.size();
  }
  return out;
}

PairGap GapOf(const RequestPair& pair) {
  PairGap out;
  const auto take = [&](std::vector<double> RolloutRequest::*values, const RolloutRequest* first,
                        const RolloutRequest* second) {
    for (const RolloutRequest* side : {first, second}) {
      if (side && !(side->*values).empty()) return side->*values;
    }
    return std::vector<double>{};
  };
  std::vector<double> train = take(&RolloutRequest::train_logprobs, pair.train, pair.rollout);
  std::vector<double> rollout = take(&RolloutRequest::rollout_logprobs, pair.rollout, pair.train);
  if (!HaveSameTokens(pair) || train.empty() || train.size() != rollout.size()) return out;
  out.train = std::move(train);
  out.rollout = std::move(rollout);
  out.counted.assign(out.train.size(), 1);
  const RolloutRequest* masked = pair.train && !pair.train->response_mask.empty() ? pair.train : pair.rollout;
  for (size_t i = 0; i < out.counted.size(); ++i) {
    const bool masked_out =
        masked && masked->response_mask.size() == out.counted.size() && masked->response_mask[i] == 0;
    if (masked_out || !std::isfinite(out.train[i]) || !std::isfinite(out.rollout[i])) out.counted[i] = 0;
  }
  return out;
}

std::vector<TokenGap> GapsOf(const RequestPairs& pairs) {
  std::vector<TokenGap> out;
  for (size_t p = 0; p < pairs.pairs.size(); ++p) {
    const RequestPair& pair = pairs.pairs[p];
    const PairGap gap = GapOf(pair);
    for (size_t i = 0; i < gap.counted.size(); ++i) {
      if (!gap.counted[i]) continue;
      out.push_back({RequestName(pair.either(), p), pair.either().prompt + static_cast<int64_t>(i), gap.train[i],
                     gap.rollout[i]});
    }
  }
  return out;
}

double K3(const TokenGap& gap) {
  const double r = gap.train - gap.rollout;
  return std::expm1(r) - r;
}

std::optional<double> MeanK3(const std::vector<TokenGap>& gaps) {
  if (gaps.empty()) return std::nullopt;
  double sum = 0;
  for (const TokenGap& gap : gaps) sum += K3(gap);
  return sum / static_cast<double>(gaps.size());
}

}  // namespace msprobe
