#include "graph/node/overflow.h"

#include <gtest/gtest.h>

#include "json/parser.h"

namespace msprobe {
namespace {

constexpr char kGood[] = R"({"type": "torch.Tensor", "Max": 1.0, "Min": 0.0, "Mean": 0.5, "Norm": 2.0})";
constexpr char kBad[] = R"({"type": "torch.Tensor", "Max": Infinity, "Min": 0.0, "Mean": NaN, "Norm": NaN})";
constexpr char kLarge[] = R"({"type": "torch.Tensor", "Max": 1.0, "Min": 0.0, "Mean": 0.5, "Norm": 201.0})";
constexpr char kNormOnly[] = R"({"type": "torch.Tensor", "Max": 1.0, "Min": 0.0, "Mean": 0.5, "Norm": Infinity})";

std::string_view Classify(const std::string& in, const std::string& out, const char* name = "Torch.x.0.forward",
                          const std::string& kwargs = "") {
  JsonDoc doc;
  EXPECT_TRUE(ParseJson("{\"input_args\": [" + in + "], \"input_kwargs\": {" + kwargs + "}, \"output\": [" + out + "]}",
                        "t", &doc)
                  .ok());
  return OverflowName(ClassifyOverflow(name, doc));
}

TEST(Overflow, Levels) {
  EXPECT_EQ(Classify(kGood, kGood), "");
  EXPECT_EQ(Classify(kGood, kBad), "critical");
  EXPECT_EQ(Classify(kBad, kBad), "high");
  EXPECT_EQ(Classify(kBad, kGood), "medium");
  EXPECT_EQ(Classify(kGood, kLarge), "high") << "the norm grew more than a hundredfold";
  EXPECT_EQ(Classify(kGood, std::string("[[") + kBad + "]]"), "critical") << "lists are searched";
  EXPECT_EQ(Classify(kGood, kGood, "Torch.x.0.forward", std::string("\"w\": ") + kBad), "medium");
}

TEST(Overflow, InfiniteNormAloneIsGrowth) { EXPECT_EQ(Classify(kGood, kNormOnly), "high"); }

TEST(Overflow, UninitialisedBuffersDoNotCount) {
  EXPECT_EQ(Classify("", kBad, "Torch.empty.0.forward"), "");
  EXPECT_EQ(Classify(kBad, kGood, "Distributed.recv.0.forward"), "");
  EXPECT_EQ(Classify(std::string(kGood) + "," + kBad, kGood, "Distributed.recv.0.forward"), "medium");
  EXPECT_EQ(Classify("", kGood, "Distributed.recv.0.forward", std::string("\"tensor\": ") + kBad), "");
  EXPECT_EQ(Classify(kBad, kGood, "Distributed.send.0.forward"), "medium");
}

}  // namespace
}  // namespace msprobe
