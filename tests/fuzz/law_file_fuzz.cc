// laws.json: nothing crashes, and what is read becomes findings that can be said.
#include <set>
#include <vector>

#include "fuzz_file.h"
#include "judge/judge_directory.h"
#include "judge/law_events.h"
#include "judge/law_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const fuzz::MemoryFile input(data, size);
  RankLaws laws;
  for (const size_t rank : {0, 1}) {
    if (const Status read = ReadLaws(input.path(), rank, &laws); !read.ok()) {
      fuzz::CheckRefusal(read);
      return 0;
    }
  }
  const size_t lines = laws.broken.size();
  const std::vector<BrokenLaw> together = TogetherOf(std::move(laws.broken), 2);
  fuzz::Check(2 * together.size() <= lines, "both ranks say the same");
  JudgedDirectory judgement;
  judgement.ranks = 2;
  AddLaws(together, INT64_MIN, &judgement.events);
  fuzz::Check(judgement.events.size() <= kMostEvents, "not more events than are shown");
  int64_t last = INT64_MIN;
  for (const JudgedEvent& event : judgement.events) {
    fuzz::Check(event.by_law && !event.laws.empty() && event.onset >= last, "an event of laws has one, in order");
    last = event.onset;
    const std::string line = EventJson(event, judgement);
    fuzz::Check(!line.empty() && line.find('\n') == std::string::npos, "an event is one line");
  }
  fuzz::Check(!JudgementText(judgement).empty(), "it can be said");
  return 0;
}
