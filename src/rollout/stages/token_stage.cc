// Stage token: ids, masks, positions, and whether log-probabilities are of the token they stand at.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "rollout/stages/judge_stages.h"
#include "rollout/stages/sequence_difference.h"
#include "rollout/stages/statistics.h"

namespace msprobe {
namespace {

constexpr size_t kFewestShifted = 8;                          // tokens that show a shift
constexpr double kShiftShare = 0.25;                          // of the gap that a shift may leave
constexpr double kSmallestShift = 0.02;                       // of the mean gap, in nats
constexpr double kShiftedAlike = 0.9, kUnshiftedAlike = 0.6;  // correlations

/// `b` is `a` one token earlier. Where all that they have in common is one value, an end that is left out is no shift.
bool IsMaskShifted(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  const bool equal = std::equal(a.begin() + 1, a.end(), b.begin());
  return equal && std::adjacent_find(a.begin() + 1, a.end(), std::not_equal_to<>()) != a.end();
}

struct TokenFinding {
  std::string kind;
  Message sentence;
  RolloutPlace place;
  std::optional<double> share;
};

class TokenJudge {
 public:
  TokenJudge(const SideEvidence& train, const SideEvidence& rollout, const RequestPairs& pairs) : pairs_(pairs) {
    for (const SideEvidence* side : {&train, &rollout}) {
      if (side->records) padding_.insert(side->records->padding.begin(), side->records->padding.end());
    }
  }

  RolloutStageResult Judge() {
    for (size_t i = 0; i < pairs_.pairs.size(); ++i) LookAt(i);
    LookForShift();
    RolloutStageResult out;
    out.stage = RolloutStage::kToken;
    if (compared_ > 0) {
      out.seen = Msg("the ids of {} requests, {} tokens", compared_, tokens_);
    } else {
      out.seen = shared_ > 0 ? Msg("one list of ids for both sides, {} requests", shared_)
                 : once_ > 0 ? Msg("ids of one side, {} requests", once_)
                             : Message();
    }
    out.figures = {{"requests", static_cast<double>(compared_)}, {"tokens", static_cast<double>(tokens_)}};
    Conclude(&out);
    if (pairs_.only_train + pairs_.only_rollout > 0 && pairs_.by != PairedBy::kNothing) {
      out.evidence.push_back(
          Msg("{} requests of the trainer and {} of the engine have no partner, such as groups that were filtered",
              pairs_.only_train, pairs_.only_rollout));
    }
    if (positions_ == 0) out.not_seen.push_back(Msg("position ids"));
    if (masks_ == 0) out.not_seen.push_back(Msg("masks of both sides"));
    return out;
  }

 private:
  void Add(std::string kind, Message sentence, size_t pair, int64_t position, std::optional<double> share = {}) {
    if (counts_[kind]++ > 0) return;
    findings_.push_back({std::move(kind), std::move(sentence),
                         RolloutPlace{RequestName(pairs_.pairs[pair].either(), pair), position, {}, {}}, share});
  }

  void LookAt(size_t index) {
    const RequestPair& pair = pairs_.pairs[index];
    for (const RolloutRequest* side : {pair.train, pair.rollout}) {
      if (side) LookAtPositions(*side, index, side == pair.train);
    }
    if (!pair.train || !pair.rollout || pair.train->tokens.empty() || pair.rollout->tokens.empty()) {
      const RolloutRequest& one = pair.either();
      shared_ += !one.tokens.empty() && !one.train_logprobs.empty() && !one.rollout_logprobs.empty();
      once_ += (pair.train && !pair.train->tokens.empty()) || (pair.rollout && !pair.rollout->tokens.empty());
      return;
    }
    ++compared_;
    tokens_ += static_cast<size_t>(pair.train->tokens.size());
    SequenceDifference difference = CompareSequences(*pair.train, *pair.rollout, padding_);
    if (!difference.kind.empty()) {
      Add(difference.kind, difference.sentence, index, difference.position);
      return;
    }
    LookAtMasks(pair, index);
  }

  void LookAtPositions(const RolloutRequest& side, size_t index, bool train) {
    if (side.positions.empty()) return;
    ++positions_;
    const int64_t first = side.positions[0];
    size_t i = 0;
    while (i < side.positions.size() && side.positions[i] == first + static_cast<int64_t>(i)) ++i;
    const Message who = train ? Msg("the trainer") : Msg("the engine");
    if (i < side.positions.size()) {
      Add("positions", Msg("the positions of {} do not count up: token {} has position {}", who, i, side.positions[i]),
          index, static_cast<int64_t>(i));
    } else if (first != 0) {
      Add("positions", Msg("the positions of {} begin at {} instead of 0, as if padding counted", who, first), index,
          0);
    }
  }

  void LookAtMasks(const RequestPair& pair, size_t index) {
    const std::vector<uint8_t>&a = pair.train->response_mask, &b = pair.rollout->response_mask;
    if (a.empty() || a.size() != b.size()) return;
    ++masks_;
    if (a == b) return;
    const auto at = std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
    const int64_t position = pair.train->prompt + at;
    size_t differ = 0;
    for (size_t i = 0; i < a.size(); ++i) differ += a[i] != b[i];
    const Message mine = a[static_cast<size_t>(at)] ? Msg("counts it") : Msg("leaves it out");
    const Message theirs = b[static_cast<size_t>(at)] ? Msg("counts it") : Msg("leaves it out");
    Add("mask",
        IsMaskShifted(a, b) || IsMaskShifted(b, a)
            ? Msg("the masks of responses are shifted by one token, from token {} on", position)
        : differ == 1
            ? Msg("the masks of responses differ at token {}: the trainer {}, the engine {}", position, mine, theirs)
            : Msg("the masks of responses differ at {} tokens, from token {} on: the trainer {}, the engine {}", differ,
                  position, mine, theirs),
        index, position);
  }

  /// Of trainer and engine, each at its own token and beside those of the neighbouring one.
  struct Neighbours {
    std::vector<double> own[2], ahead[2], behind[2];

    void Add(const PairGap& gap) {
      const auto both = [&](size_t train, size_t rollout, std::vector<double>* to) {
        if (!gap.counted[train] || !gap.counted[rollout]) return;
        to[0].push_back(gap.train[train]);
        to[1].push_back(gap.rollout[rollout]);
      };
      for (size_t i = 0; i < gap.counted.size(); ++i) {
        both(i, i, own);
        if (i + 1 == gap.counted.size()) continue;
        both(i + 1, i, ahead);
        both(i, i + 1, behind);
      }
    }
  };

  /// Log-probabilities that fit those of the neighbouring token, and not those of their own: of all requests together,
  /// which few tokens show, else of single ones.
  void LookForShift() {
    Neighbours all;
    std::vector<Neighbours> each(pairs_.pairs.size());
    for (size_t p = 0; p < pairs_.pairs.size(); ++p) {
      const PairGap gap = GapOf(pairs_.pairs[p]);
      all.Add(gap);
      each[p].Add(gap);
    }
    if (const auto shift = ShiftOf(all)) {
      std::vector<size_t> shown;  // requests that the shift makes equal, too
      for (size_t p = 0; p < each.size(); ++p) {
        const auto& one = each[p].*shift->to;
        if (one[0].empty()) continue;
        if (MeanDistance(one[0], one[1]) < MeanDistance(each[p].own[0], each[p].own[1])) shown.push_back(p);
      }
      if (shown.empty()) return;
      AddShift(*shift, shown[0], 1);
      counts_["shift"] = shown.size();
      return;
    }
    const double whole = MeanDistance(all.own[0], all.own[1]) * static_cast<double>(all.own[0].size());
    for (size_t p = 0; p < each.size(); ++p) {
      const double part = MeanDistance(each[p].own[0], each[p].own[1]) * static_cast<double>(each[p].own[0].size());
      if (const auto shift = ShiftOf(each[p])) AddShift(*shift, p, whole > 0 ? part / whole : 0);
    }
  }

  struct Shift {
    std::vector<double> (Neighbours::*to)[2];
    double share = 0;  // of the gap of these tokens that it explains
  };

  static std::optional<Shift> ShiftOf(const Neighbours& n) {
    if (n.own[0].size() < kFewestShifted || n.ahead[0].size() < kFewestShifted) return std::nullopt;
    const double gap = MeanDistance(n.own[0], n.own[1]);
    for (const auto to : {&Neighbours::ahead, &Neighbours::behind}) {
      const auto& shifted = n.*to;
      const double left = MeanDistance(shifted[0], shifted[1]);
      const bool alike =
          Correlation(shifted[0], shifted[1]) > kShiftedAlike && Correlation(n.own[0], n.own[1]) < kUnshiftedAlike;
      if (gap < kSmallestShift || left >= gap || (left > kShiftShare * gap && !alike)) continue;
      return Shift{to, 1 - left / gap};
    }
    return std::nullopt;
  }

  /// The lists alone do not say which of them stands at the wrong tokens. `part` of the whole gap lies on these.
  void AddShift(const Shift& shift, size_t pair, double part) {
    Add("shift",
        shift.to == &Neighbours::ahead
            ? Msg("the two lists of log-probabilities are one token apart: the engine's at a token is the trainer's at "
                  "the next one; which of them is shifted, the lists alone do not say")
            : Msg("the two lists of log-probabilities are one token apart: the trainer's at a token is the engine's at "
                  "the next one; which of them is shifted, the lists alone do not say"),
        pair, pairs_.pairs[pair].either().prompt, part * shift.share);
  }

  void Conclude(RolloutStageResult* out) {
    if (findings_.empty()) {
      if (compared_ > 0) {
        out->verdict = RolloutVerdict::kAgrees;
        out->sentence = Msg("equal ({})", tokens_);
        return;
      }
      out->sentence = Msg("not seen");
      out->next_run =
          Msg("save the ids that the engine returned and those that the trainer computes on, in records of both");
      return;
    }
    const TokenFinding& lead = findings_[0];
    out->verdict = RolloutVerdict::kCause;
    out->kind = lead.kind;
    out->sentence = lead.sentence;
    out->place = lead.place;
    out->share = lead.share;
    for (const TokenFinding& finding : findings_) {
      const size_t count = counts_[finding.kind];
      out->evidence.push_back(
          count == 1 ? Msg("request {}: {}; 1 request shows that", finding.place.request, finding.sentence)
                     : Msg("request {}: {}; {} requests show that", finding.place.request, finding.sentence, count));
    }
    for (size_t i = 1; i < findings_.size(); ++i) out->also.push_back(findings_[i].sentence);
  }

  const RequestPairs& pairs_;
  std::set<int64_t> padding_;
  std::vector<TokenFinding> findings_;
  std::map<std::string, size_t> counts_;
  size_t compared_ = 0, tokens_ = 0, once_ = 0, shared_ = 0, positions_ = 0, masks_ = 0;
};

}  // namespace

RolloutStageResult TokenStage(const SideEvidence& train, const SideEvidence& rollout, const RequestPairs& pairs) {
  return TokenJudge(train, rollout, pairs).Judge();
}

}  // namespace msprobe
