#include "dump/gaps.h"

#include "base/file.h"
#include "base/message.h"
#include "dump/reader.h"
#include "dump/step_summary.h"

namespace msprobe {
namespace {

/// The number behind `prefix`; -1 without one: "rank" alone is the only rank.
int NumberBehind(std::string_view name, std::string_view prefix) {
  constexpr size_t kMostDigits = 9;
  if (!name.starts_with(prefix)) return -1;
  name.remove_prefix(prefix.size());
  if (name.empty() || name.size() > kMostDigits) return -1;
  int out = 0;
  for (const char c : name) {
    if (c < '0' || c > '9') return -1;
    out = 10 * out + (c - '0');
  }
  return out;
}

RecordingGap GapAt(DumpSide side, const std::string& path) {
  RecordingGap out;
  out.side = side;
  out.path = path;
  const std::string_view directory = DirName(path);
  out.rank = NumberBehind(BaseName(directory), "rank");
  out.step = NumberBehind(BaseName(DirName(directory)), "step");
  return out;
}

}  // namespace

void NoteGap(DumpSide side, const DumpFile& dump, std::vector<RecordingGap>* gaps) {
  if (dump.wholeness().whole()) return;
  RecordingGap gap = GapAt(side, dump.path());
  gap.what = dump.wholeness();
  gaps->push_back(std::move(gap));
}

void NoteUnopenedGap(DumpSide side, const std::string& directory, std::vector<RecordingGap>* gaps) {
  const StatusOr<StepSummary> summary = StepSummary::Read(JoinPath(directory, kSummaryName));
  if (!summary.ok()) return;
  RecordingGap gap = GapAt(side, JoinPath(directory, "dump.json"));
  gap.what = WholenessOf(directory, summary->ops, false);
  if (!gap.what.whole()) gaps->push_back(std::move(gap));
}

Status NotWhole() {
  return BadInput(
      Msg("what was given is not whole: the answer holds for what was seen, 'msprobe verify-dump' lists the rest"));
}

}  // namespace msprobe
