// What the dumps of two runs say: the op that makes the first difference, and at which stage of the training it stands.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "diagnose/story/story.h"
#include "doctor/dump_values.h"
#include "doctor/files/run_files.h"
#include "doctor/stage.h"

namespace msprobe {

struct DumpOrigin {
  StageId stage = StageId::kStep1Loss;
  int step = -1;
  StoryOrigin origin;
  std::string verdict;     // "bug", "suspicious"
  bool elsewhere = false;  // only one run calls it, and the other has its values all the same
};

struct DumpEvidence {
  bool seen = false;        // steps that both recorded
  std::vector<int> steps;   // of them
  bool first_step = false;  // the first of the training is among them
  bool second_step = false;
  bool tensors = false;    // both hold the tensors themselves
  std::vector<int> clean;  // steps that agree, but for rounding
  bool bit_equal = false;  // in all of them
  std::optional<DumpOrigin> origin;
  bool origin_open = false;  // it is in an update, and no later step says whether it changed a weight
  bool unknown = false;      // ops differ and none begins it
  int unknown_step = -1;
  std::optional<GivenData> given;  // labels, ids or masks that differ
  int given_step = -1;
  Story story;       // of the step that differs, else of the last
  std::string html;  // report of that comparison
  std::vector<Message> notes;
  std::vector<RecordingGap> gaps;  // recordings of A and B that are not whole
  uint64_t unread = 0;             // rows whose tensors could not be read
  bool whole = true;               // all that both recorded could be seen
};

/// The comparisons are written to `output`.
StatusOr<DumpEvidence> CompareRunDumps(const RunFiles& a, const RunFiles& b, const std::string& output);

}  // namespace msprobe
