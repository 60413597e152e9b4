// Recordings that are not whole, by side, step and rank, and the sentence with which an answer begins for them.
#pragma once

#include <string>
#include <vector>

#include "base/language.h"
#include "base/status.h"
#include "dump/wholeness.h"

namespace msprobe {

class DumpFile;

/// Which of two runs a recording is of; of a run by itself kOnly. The doctor calls them A (golden) and B.
enum class DumpSide : uint8_t { kOnly, kTarget, kGolden, kA, kB };

/// A recording that is not whole.
struct RecordingGap {
  DumpSide side = DumpSide::kOnly;
  int step = -1, rank = -1;  // by the names of its directories; -1: not known
  std::string path;          // of its dump.json
  Wholeness what;
};

/// Adds `dump` to `gaps` where it is not whole.
void NoteGap(DumpSide side, const DumpFile& dump, std::vector<RecordingGap>* gaps);
/// By dump_summary.json alone, for recordings that nobody opens.
void NoteUnopenedGap(DumpSide side, const std::string& directory, std::vector<RecordingGap>* gaps);

/// A sentence without its stop, with which an answer begins: "Step 1 of the target was cut: the run was killed after
/// 795 of its ops"; "" when there is none. Ranks that fared alike share it; beyond the first few there is a count.
std::string GapText(const std::vector<RecordingGap>& gaps, Language language);

class JsonWriter;
/// [{"side": "target", "step": 1, "rank": 0, "state": "killed", "ops": 795, "ops_not_written": 0,
/// "tensors_not_written": 0, "why": null, "path": ".."}]
void WriteGaps(JsonWriter* json, const std::vector<RecordingGap>& gaps);

class JsonValue;
/// What WriteGaps() wrote; what is not of that form is left out.
std::vector<RecordingGap> ReadGaps(const JsonValue& list);

/// kBadInput, for commands that have told what there is.
Status NotWhole();

}  // namespace msprobe
