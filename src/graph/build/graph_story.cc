#include "graph/build/graph_story.h"

#include <algorithm>

#include "base/file.h"
#include "base/message.h"
#include "diagnose/overflow/overflow.h"
#include "graph/build/cut_files.h"

namespace msprobe {
namespace {

/// Nothing where the dump cannot be searched; then the user is warned.
StatusOr<std::optional<OverflowReport>> Search(const OverflowSearch& search, const std::string& path) {
  StatusOr<OverflowReport> report = FindOverflow(path);
  if (report.ok()) return std::optional(std::move(*report));
  if (report.status().code() != Code::kBadInput && report.status().code() != Code::kUsage) return report.status();
  if (search.warning) search.warning(Msg("the origin of NaN and infinities is not known: {}", report.status().text()));
  return std::optional<OverflowReport>();
}

Status AddSearch(const OverflowSearch& search, std::optional<Story>* story) {
  MSP_ASSIGN_OR_RETURN(const std::optional<OverflowReport> target, Search(search, search.target));
  if (!target) return OkStatus();
  if (!*story) {
    *story = StoryOf(*target);
    return OkStatus();
  }
  std::optional<OverflowReport> golden;
  if (!target->first.empty() && !search.golden.empty()) {
    MSP_ASSIGN_OR_RETURN(golden, Search(search, search.golden));
  }
  AddOverflow(*target, golden ? &*golden : nullptr, &**story);
  return OkStatus();
}

}  // namespace

FilePair FilesOf(const GraphPair& pair) {
  FilePair out;
  out.target = JoinPath(pair.target_dir, "dump.json");
  out.golden = JoinPath(pair.golden_dir, "dump.json");
  out.step = pair.named_step;
  out.rank = pair.named_rank;
  return out;
}

Status FinishStory(StoryFinder* finder, bool values, const std::optional<OverflowSearch>& overflow,
                   GraphSummary* summary) {
  MSP_RETURN_IF_ERROR(finder->End());
  if (values) {
    finder->Explain();
    summary->story = finder->Tell();
  }
  if (const Divergence& d = finder->divergence(); d.found) {
    summary->first_difference = {std::max(d.step, 0), std::max(d.creator.rank, 0), d.creator.difference};
  }
  if (overflow) MSP_RETURN_IF_ERROR(AddSearch(*overflow, &summary->story));
  AddGaps(summary);
  return OkStatus();
}

}  // namespace msprobe
