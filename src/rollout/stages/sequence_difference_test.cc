#include "rollout/stages/sequence_difference.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace msprobe {
namespace {

RolloutRequest Sequence(std::vector<int64_t> tokens, int64_t prompt = 1) {
  RolloutRequest out;
  out.tokens = std::move(tokens);
  out.prompt = prompt;
  return out;
}

std::string KindOf(const std::vector<int64_t>& train, const std::vector<int64_t>& rollout) {
  return CompareSequences(Sequence(train), Sequence(rollout), {0}).kind;
}

TEST(SequenceDifference, NamesWhatHappenedToIds) {
  EXPECT_EQ(KindOf({5, 6, 7, 8}, {5, 6, 7, 8}), "");
  EXPECT_EQ(KindOf({0, 5, 6, 7, 8}, {5, 6, 7, 8}), "padding_attended");  // one, but an id that fills rows
  EXPECT_EQ(KindOf({9, 9, 5, 6, 7, 8}, {5, 6, 7, 8}), "padding_attended");
  EXPECT_EQ(KindOf({5, 6, 7, 8, 0, 0}, {5, 6, 7, 8}), "padding_attended");
  EXPECT_EQ(KindOf({5, 5, 6, 7, 8}, {5, 6, 7, 8}), "first_token_twice");
  EXPECT_EQ(KindOf({5, 6, 7, 8, 2}, {5, 6, 7, 8}), "extra_token");  // an end of text that nobody drew
  EXPECT_EQ(KindOf({5, 6, 7}, {5, 6, 7, 8, 9}), "truncated");
  EXPECT_EQ(KindOf({7, 8, 9}, {5, 6, 7, 8, 9}), "truncated");
  EXPECT_EQ(KindOf({5, 6, 7, 8}, {6, 7, 8, 9}), "shift");
  EXPECT_EQ(KindOf({5, 6, 7, 8, 9, 10}, {5, 6, 77, 8, 9, 10}), "ids");
  EXPECT_EQ(KindOf({5, 6, 7, 8, 9, 10}, {5, 6, 78, 9, 10}), "retokenised");
  EXPECT_EQ(KindOf({5, 6, 7, 8, 9, 10}, {15, 16, 17, 18, 19, 20}), "other_text");
}

TEST(SequenceDifference, SaysWhere) {
  const SequenceDifference found = CompareSequences(Sequence({5, 6, 7, 8, 9, 10}), Sequence({5, 6, 78, 9, 10}), {});
  EXPECT_EQ(found.position, 2);
  EXPECT_EQ(CompareSequences(Sequence({5, 6, 7}, 1), Sequence({5, 6, 7}, 2), {}).kind, "boundary");
}

TEST(SequenceDifference, TheSameTextIsRetokenisedAtAnyLength) {
  RolloutRequest a = Sequence({5, 6, 7, 8}), b = Sequence({5, 16, 17, 8});
  a.text = b.text = "text";
  EXPECT_EQ(CompareSequences(a, b, {}).kind, "retokenised");
}

TEST(SequenceDifference, SaysNoMoreThanIdsShow) {
  const auto says = [](RolloutRequest a, RolloutRequest b) {
    return std::string(CompareSequences(a, b, {}).sentence.English());
  };
  RolloutRequest a = Sequence({5, 6, 7, 8, 9, 10}), b = Sequence({5, 6, 78, 9, 10});
  EXPECT_EQ(says(a, b).find("the same text"), std::string::npos);
  EXPECT_NE(says(a, b).find("2 tokens in place of 1 token of the engine"), std::string::npos);
  a.text = b.text = "text";
  EXPECT_NE(says(a, b).find("other ids for the same text"), std::string::npos);
  // A token that is there once more is no text in other ids.
  EXPECT_EQ(KindOf({5, 6, 6, 7, 8, 9}, {5, 6, 7, 8, 9}), "extra_token");
}

TEST(SequenceDifference, EmptyOnesAreNoFault) {
  EXPECT_EQ(CompareSequences(Sequence({}, 0), Sequence({}, 0), {}).kind, "");
  EXPECT_EQ(CompareSequences(Sequence({}, 0), Sequence({5, 6, 7}), {}).kind, "truncated");
}

}  // namespace
}  // namespace msprobe
