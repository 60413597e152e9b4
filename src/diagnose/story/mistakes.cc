#include "diagnose/story/mistakes.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/text.h"

namespace msprobe {
namespace {

constexpr double kFew = 0.4;  // of the ops of the smaller run: two models share some names

/// The N of "stepN" in a path; -1 where there is none.
int StepOf(std::string_view path) {
  constexpr std::string_view kStep = "/step";
  const size_t at = path.rfind(kStep);
  if (at == std::string_view::npos) return -1;
  int out = -1;
  const char* const begin = path.data() + at + kStep.size();
  const auto [end, error] = std::from_chars(begin, path.data() + path.size(), out);
  return error == std::errc() && (end == path.data() + path.size() || *end == '/') ? out : -1;
}

bool IsSameFile(const FilePair& files) {
  std::error_code error;
  return std::filesystem::equivalent(files.target, files.golden, error) && !error;
}

/// Data or weights are others from the beginning, as they are in another step.
bool BeginsWithOtherValues(const Story& s) {
  if (s.origins.empty()) return false;
  const Cause cause = s.origins.front().cause;
  return cause == Cause::kInput || cause == Cause::kWeight || cause == Cause::kShape;
}

bool IsOtherModel(const Story& s) {
  if (s.origins.empty()) return false;
  const Cause cause = s.origins.front().cause;
  const uint64_t matched =
      s.ops.none + s.ops.bit_equal + s.ops.round_off + s.ops.rewritten + s.ops.inherited + s.ops.suspicious + s.ops.bug;
  const uint64_t fewest = matched > s.target_only ? matched - s.target_only + std::min(s.target_only, s.golden_only)
                                                  : std::min(s.target_only, s.golden_only);
  const bool shape = cause == Cause::kMissingOp || cause == Cause::kExtraOp || cause == Cause::kShape;
  const uint64_t paired = matched > s.target_only ? matched - s.target_only : 0;
  return shape && static_cast<double>(paired) < kFew * static_cast<double>(fewest);
}

}  // namespace

void RecogniseMistake(const std::vector<FilePair>& files, Story* story) {
  using Kind = Story::Mistake::Kind;
  if (files.empty()) return;
  const int target = StepOf(files.front().target), golden = StepOf(files.front().golden);
  if (story->outcome == Story::Outcome::kEqual && std::ranges::all_of(files, IsSameFile)) {
    story->mistake = {Kind::kSamePath, {}, {}};
    return;
  }
  if (target >= 0 && golden >= 0 && target != golden && BeginsWithOtherValues(*story)) {
    story->mistake = {Kind::kOtherStep, std::to_string(target), std::to_string(golden)};
  } else if (IsOtherModel(*story)) {
    story->mistake = {Kind::kOtherModel, std::to_string(story->target_only), std::to_string(story->golden_only)};
  } else {
    return;
  }
  story->cut.insert(story->cut.end(), story->origins.begin(), story->origins.end());
  story->origins.clear();
  story->reached.clear();
  story->inherited = story->forward = story->backward = 0;
  story->modules.clear();
  story->outcome = Story::Outcome::kUnknown;
}

}  // namespace msprobe
