#include "rollout/records/read_records.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rollout/gap.h"
#include "rollout/records/record_value.h"

namespace msprobe {
namespace {

StatusOr<RolloutRecords> Read(std::string_view text, RolloutSide side = RolloutSide::kTrain,
                              const std::string& path = "a.jsonl", size_t numbers = kMostRecordNumbers) {
  RolloutRecords out;
  MSP_RETURN_IF_ERROR(ReadRecordText(text, path, side, &numbers, &out));
  return out;
}

TEST(ReadRecords, ALineIsARequest) {
  const auto read = Read(
      "{\"request_id\": \"a\", \"prompt_token_ids\": [1, 2], \"token_ids\": [3, 4], \"logprobs\": [-1, -2]}\n\n"
      "{\"request_id\": 7, \"prompt_token_ids\": [1], \"token_ids\": [5], \"logprobs\": [null]}\n");
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->requests.size(), 2u);
  EXPECT_EQ(read->requests[0].tokens, (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(read->requests[0].prompt, 2);
  EXPECT_EQ(read->requests[0].train_logprobs, (std::vector<double>{-1, -2}));
  EXPECT_TRUE(read->requests[0].rollout_logprobs.empty());
  EXPECT_EQ(read->requests[1].id, "7");
  EXPECT_EQ(read->requests[1].line, 3);
  EXPECT_TRUE(std::isnan(read->requests[1].train_logprobs[0]));
}

TEST(ReadRecords, ABatchLosesItsPadding) {
  const auto read = Read(
      "{\"prompts\": [[0, 1, 2], [1, 2, 3]], \"responses\": [[4, 5], [6, 0]], \"attention_mask\": [[0, 1, 1, 1, 1], "
      "[1, 1, 1, 1, 0]], \"old_log_probs\": [[-1, -2], [-3, 0]], \"rollout_log_probs\": [[-1, -2], [-3, 0]]}",
      RolloutSide::kTrain, "a.json");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->program, "verl");
  ASSERT_EQ(read->requests.size(), 2u);
  EXPECT_EQ(read->requests[0].tokens, (std::vector<int64_t>{1, 2, 4, 5}));
  EXPECT_EQ(read->requests[1].tokens, (std::vector<int64_t>{1, 2, 3, 6}));
  EXPECT_EQ(read->requests[1].rollout_logprobs, std::vector<double>{-3});
  EXPECT_EQ(read->padding, std::set<int64_t>{0});
}

TEST(ReadRecords, ListsOfWholeRowsAreCutToTheResponse) {
  for (const std::string_view list : {"[0, 0, -1, -2]", "[0, -1, -2]", "[-1, -2]"}) {
    const std::string line =
        "{\"token_ids\": [7, 8, 9, 10], \"token_loss_mask\": [0, 0, 1, 1], \"prev_logprobs\": " + std::string(list) +
        ", \"generation_logprobs\": [0, 0, -1, -2]}";
    const auto read = Read(line);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->program, "NeMo-RL");
    EXPECT_EQ(read->requests[0].prompt, 2);
    EXPECT_EQ(read->requests[0].train_logprobs, (std::vector<double>{-1, -2})) << list;
  }
}

TEST(ReadRecords, WhatIsTooLargeOrNestedIsRefused) {
  EXPECT_FALSE(Read("{\"token_ids\": [1, 2, 3, 4]}", RolloutSide::kTrain, "a.jsonl", 3).ok());
  EXPECT_FALSE(Read("{\"token_ids\": " + std::string(50, '[') + std::string(50, ']') + "}").ok());
  EXPECT_FALSE(Read("{\"token_ids\": [1, 2").ok());
  EXPECT_FALSE(Read("no archive", RolloutSide::kTrain, "a.pt").ok());
}

TEST(ReadRecords, OddListsMakeNoRequestOfTheirOwn) {
  for (const std::string_view line :
       {"[]", "3", "{}", "{\"token_ids\": []}", "{\"token_ids\": [[]]}",
        "{\"token_ids\": [[1], [2, 3]], \"logprobs\": 3}",
        "{\"tokens\": [1e300, -1e300], \"response_length\": -5, \"log_probs\": [1]}",
        "{\"sequences\": [1, 2], \"response_mask\": [1, 1, 1, 1], \"action_log_probs\": [1, 2, 3, 4]}",
        "{\"token_ids\": [1, 2], \"input_lengths\": 1e300, \"token_loss_mask\": [1]}",
        "{\"prompts\": [1], \"responses\": [2], \"routed_experts\": [[[1]], [[2]]], \"logits\": [[1, 2]]}"}) {
    const auto read = Read(line);
    ASSERT_TRUE(read.ok()) << line;
    for (const RolloutRequest& request : read->requests) {
      EXPECT_GE(request.prompt, 0);
      EXPECT_LE(request.prompt, static_cast<int64_t>(request.tokens.size())) << line;
    }
    (void)GapsOf(PairRequests(*read, *read));
  }
}

TEST(Gap, RequestsFindEachOtherByNamesThenTokensThenOrder) {
  const auto a =
      Read("{\"token_ids\": [1, 2, 3], \"logprobs\": [-1, -2, -3]}\n{\"token_ids\": [4, 5], \"logprobs\": [-4, -5]}");
  const auto b =
      Read("{\"token_ids\": [4, 5], \"logprobs\": [-4, -5]}\n{\"token_ids\": [1, 2, 9], \"logprobs\": [-1, -2, -9]}",
           RolloutSide::kRollout);
  ASSERT_TRUE(a.ok() && b.ok());
  const std::optional<RolloutRecords> train = *a, rollout = *b;
  const RequestPairs pairs = PairRequests(train, rollout);
  ASSERT_EQ(pairs.pairs.size(), 2u);
  EXPECT_EQ(pairs.pairs[0].rollout, &rollout->requests[1]);
  EXPECT_EQ(pairs.pairs[1].rollout, &rollout->requests[0]);
  EXPECT_EQ(GapsOf(pairs).size(), 2u);  // those of other ids are not compared
}

TEST(Gap, K3IsThatOfTheKl) {
  EXPECT_DOUBLE_EQ(K3({"", 0, -1, -1}), 0);
  EXPECT_NEAR(K3({"", 0, -1.5, -1}), std::exp(-0.5) - 1 + 0.5, 1e-12);
}

}  // namespace
}  // namespace msprobe
