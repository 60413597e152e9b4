#include "view/run/run_findings.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/words/translate.h"

namespace msprobe::view {
namespace {

TEST(RunFindings, SaysWhyARunIsNotJudged) {
  const std::string directory = testing::TempDir() + "run_findings_without_series";
  std::filesystem::create_directories(directory);
  RunJudgements judgements;
  const RunFindings found = judgements.Of(directory, 1, std::chrono::seconds(30));
  EXPECT_TRUE(found.events.empty());
  EXPECT_TRUE(found.unjudged.English().starts_with("The series could not be judged: ")) << found.unjudged.English();
  EXPECT_TRUE(InLanguage(found.unjudged, Language::kChinese).starts_with("无法判定各序列："));
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace msprobe::view
