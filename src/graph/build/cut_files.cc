#include "graph/build/cut_files.h"

#include "parallel/merge_data.h"

namespace msprobe {

void NoteCutFiles(const GraphPair& pair, const RankGraph& target, const RankGraph* golden, GraphSummary* summary) {
  for (const RankGraph* rank : {&target, golden}) {
    if (!rank) continue;
    const DumpSide side = !golden ? DumpSide::kOnly : rank == golden ? DumpSide::kGolden : DumpSide::kTarget;
    for (const RankFiles* files : FilesOf(*rank)) {
      NoteGap(side, files->dump, &summary->gaps);
      for (const Message& text : {files->dump.truncated(), files->stack.truncated(), files->construct.truncated})
        if (!text.empty()) summary->damaged.push_back({pair.step, pair.rank, false, BadInput(text)});
    }
  }
}

void NoteMergedGaps(DumpSide side, const RankGraph& rank, std::vector<RecordingGap>* gaps) {
  for (const RankFiles* files : FilesOf(rank)) NoteGap(side, files->dump, gaps);
  for (RecordingGap& gap : *gaps) gap.what.ops_end = false;
}

void AddGaps(GraphSummary* summary) {
  uint64_t left_out = 0;
  std::string first;
  for (const DamagedRank& d : summary->damaged) {
    if (d.left_out && left_out++ == 0) first = d.why.message();
  }
  const bool whole = summary->gaps.empty() && summary->unread == 0 && left_out == 0;
  if (whole) return;
  if (!summary->story) {
    summary->story.emplace();
    summary->story->compared = false;
  }
  Story& story = *summary->story;
  story.gaps = summary->gaps;
  story.unread = summary->unread;
  story.first_unread = summary->first_unread;
  story.not_compared = left_out;
  story.first_not_compared = first;
  story.Weigh();
}

}  // namespace msprobe
