#include "rollout/stages/sequence_difference.h"

#include <algorithm>
#include <span>

namespace msprobe {
namespace {

using Ids = std::span<const int64_t>;

constexpr size_t kMostAligned = 4096;  // tokens of a sequence that is aligned with another

size_t CommonFront(Ids a, Ids b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}

size_t CommonBack(Ids a, Ids b, size_t front) {
  size_t n = 0;
  while (front + n < a.size() && front + n < b.size() && a[a.size() - 1 - n] == b[b.size() - 1 - n]) ++n;
  return n;
}

bool EndsWithIds(Ids whole, Ids end) {
  return whole.size() >= end.size() &&
         std::equal(end.begin(), end.end(), whole.end() - static_cast<ptrdiff_t>(end.size()));
}
bool BeginsWithIds(Ids whole, Ids begin) {
  return whole.size() >= begin.size() && std::equal(begin.begin(), begin.end(), whole.begin());
}

/// One id many times, or an id that fills rows.
bool IsPadding(Ids ids, const std::set<int64_t>& padding) {
  if (ids.empty() || std::any_of(ids.begin(), ids.end(), [&](int64_t id) { return id != ids[0]; })) return false;
  return ids.size() >= 2 || padding.contains(ids[0]);
}

/// Tokens that both have in the same order.
size_t CommonTokens(Ids a, Ids b) {
  std::vector<uint32_t> row(b.size() + 1), above(b.size() + 1);
  for (const int64_t id : a) {
    std::swap(row, above);
    for (size_t j = 0; j < b.size(); ++j) row[j + 1] = id == b[j] ? above[j] + 1 : std::max(row[j], above[j + 1]);
  }
  return row.back();
}

Message TokensText(size_t n) { return n == 1 ? Msg("1 token") : Msg("{} tokens", n); }

/// One side has the other's tokens and more, before or behind.
SequenceDifference CompareInner(Ids longer, Ids shorter, bool train_longer, const std::set<int64_t>& padding) {
  const size_t more = longer.size() - shorter.size();
  const Message side = train_longer ? Msg("the trainer") : Msg("the engine");
  const Message other = train_longer ? Msg("the engine") : Msg("the trainer");
  if (EndsWithIds(longer, shorter)) {
    const Ids extra = longer.first(more);
    if (more == 1 && !padding.contains(extra[0])) {
      return extra[0] == shorter[0]
                 ? SequenceDifference{"first_token_twice", Msg("{} has the first token, {}, twice", side, extra[0]), 0}
                 : SequenceDifference{"extra_token", Msg("{} has one more token, {}, in front", side, extra[0]), 0};
    }
    if (IsPadding(extra, padding))
      return {"padding_attended",
              Msg("{} takes padding in front, {} of id {}, for text", side, TokensText(more), extra[0]), 0};
    return {"truncated", Msg("{} lacks the first {} tokens of {}", other, more, longer.size()), 0};
  }
  if (BeginsWithIds(longer, shorter)) {
    const Ids extra = longer.subspan(shorter.size());
    const auto at = static_cast<int64_t>(shorter.size());
    if (more == 1 && !shorter.empty())
      return {"extra_token", Msg("{} has one more token, {}, behind", side, extra[0]), at};
    if (IsPadding(extra, padding))
      return {"padding_attended",
              Msg("{} takes padding behind, {} of id {}, for text", side, TokensText(more), extra[0]), at};
    return {"truncated", Msg("{} ends behind {} of {} tokens", other, shorter.size(), longer.size()), at};
  }
  return {};
}

}  // namespace

SequenceDifference CompareSequences(const RolloutRequest& train, const RolloutRequest& rollout,
                                    const std::set<int64_t>& padding) {
  const Ids a = train.tokens, b = rollout.tokens;
  if (std::equal(a.begin(), a.end(), b.begin(), b.end())) {
    if (train.prompt == rollout.prompt) return {};
    return {"boundary",
            Msg("the response begins at token {} for the trainer, at {} for the engine", train.prompt, rollout.prompt),
            std::min(train.prompt, rollout.prompt)};
  }
  if (a.size() != b.size()) {
    const bool longer = a.size() > b.size();
    if (auto inner = CompareInner(longer ? a : b, longer ? b : a, longer, padding); !inner.kind.empty()) return inner;
  } else if (a.size() > 2) {
    const size_t rest = a.size() - 1;
    if (std::equal(a.begin() + 1, a.end(), b.begin()) || std::equal(b.begin() + 1, b.end(), a.begin())) {
      const bool ahead = std::equal(a.begin() + 1, a.end(), b.begin());
      return {"shift",
              ahead ? Msg("the engine's ids are the trainer's from the second token on ({} of them)", rest)
                    : Msg("the trainer's ids are the engine's from the second token on ({} of them)", rest),
              0};
    }
  }
  const size_t front = CommonFront(a, b), back = CommonBack(a, b, front);
  const auto at = static_cast<int64_t>(front);
  const size_t other_a = a.size() - front - back, other_b = b.size() - front - back;
  const bool same_text = !train.text.empty() && train.text == rollout.text;
  size_t common = front + back;
  if (other_a <= kMostAligned && other_b <= kMostAligned)
    common += CommonTokens(a.subspan(front, other_a), b.subspan(front, other_b));
  const bool alike = 2 * common >= std::max(a.size(), b.size());
  if (same_text) {
    return {"retokenised",
            Msg("other ids for the same text, as after decoding and encoding: from token {} on, {} of the trainer in "
                "place of {} of the engine",
                at, TokensText(other_a), TokensText(other_b)),
            at};
  }
  if (alike && (other_a == 0 || other_b == 0)) {
    const bool train_more = other_b == 0;
    return {"extra_token",
            Msg("{} has {} more from token {} on, and the rest is equal",
                train_more ? Msg("the trainer") : Msg("the engine"), TokensText(train_more ? other_a : other_b), at),
            at};
  }
  // Without a text, that a stretch has another length is all that is known.
  if (alike && other_a != other_b) {
    return {"retokenised",
            Msg("from token {} on, the trainer has {} in place of {} of the engine, and the rest is equal: as where a "
                "text is retokenised, which its ids alone do not show",
                at, TokensText(other_a), TokensText(other_b)),
            at};
  }
  if (alike) {
    return {"ids",
            Msg("token {} is {} for the trainer and {} for the engine ({} of {} differ)", at, a[front], b[front],
                a.size() - common, a.size()),
            at};
  }
  return {"other_text", Msg("other tokens from {} on, {} and {}: not the same text", at, a.size(), b.size()), at};
}

}  // namespace msprobe
