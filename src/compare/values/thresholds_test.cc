#include "compare/values/thresholds.h"

#include <gtest/gtest.h>

#include "dump/test_files.h"

namespace msprobe {
namespace {

class ThresholdsTest : public testing::Test {
 protected:
  StatusOr<Thresholds> Read(const std::string& text) {
    dir_.Write("t.yaml", text);
    return ReadThresholds(dir_.path() + "/t.yaml");
  }
  TempDir dir_;
};

TEST_F(ThresholdsTest, WhatIsPrintedReadsAsTheDefault) {
  const auto read = Read(ThresholdsYaml(DefaultThresholds()));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(ThresholdsYaml(*read), ThresholdsYaml(DefaultThresholds()));
}

TEST_F(ThresholdsTest, KeysMayBeLeftOutAndTheCodesSetChosen) {
  const auto read = Read("rules: code\nstatistics:\n  output_wrong: 0.9\nruler:\n");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->output_wrong, 0.9);
  EXPECT_EQ(read->ratio_wrong, 0.1);
  EXPECT_EQ(read->input_agrees, 0.1);
}

TEST_F(ThresholdsTest, WrongFilesAreToldWithKeyValueAndLine) {
  const auto error = [&](const std::string& text) { return Read(text).status().message(); };
  EXPECT_NE(error("tensor:\n  ratio_wrng: 1\n")
                .find("line 2: \"ratio_wrng\" is not a threshold of tensor: did you mean "
                      "\"ratio_wrong\"?"),
            std::string::npos);
  EXPECT_NE(error("tensors:\n  ratio_wrong: 1\n").find("did you mean \"tensor\"?"), std::string::npos);
  EXPECT_NE(error("tensor:\n  ratio_wrong: 2\n").find("line 2: tensor.ratio_wrong is \"2\": a number from 0 to 1"),
            std::string::npos);
  EXPECT_NE(error("tensor:\n  ratio_wrong: [1]\n").find("is not a number"), std::string::npos);
  EXPECT_NE(error("tensor: 3\n").find("must hold"), std::string::npos);
  EXPECT_NE(error("rules: old\n").find("documented or code"), std::string::npos);
  EXPECT_NE(error("ruler:\n  bug: nan\n").find("is \"nan\""), std::string::npos);
}

}  // namespace
}  // namespace msprobe
