// Series in, events out: whatever the values of some ranks are, an event lies within the run, names rows that there
// are, and the same values give the same events. An input that is a monitor.series is judged as one.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "fuzz_file.h"
#include "judge/judge_directory.h"
#include "judge/series_feed.h"
#include "monitor/series_format.h"
#include "monitor/series_reader.h"

namespace {

using namespace msprobe;

constexpr size_t kMostSteps = 450;  // the detectors have begun by then
constexpr size_t kMostPuts = 1200;  // of all rows: a second without optimisation
constexpr size_t kTables = 8, kRows = 3;
const std::array<const char*, kTables> kNames{"actv",         "grad_unreduced", "grad_reduced", "exp_avg_sq",
                                              "param_origin", "param_updated",  "param_update", "loss"};
const std::array<std::vector<std::string>, 4> kColumns{
    {{"norm", "min", "max"}, {}, {"value"}, {"ratio", "norm", "norm"}}};

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return at_ >= size_; }
  uint8_t Next() { return empty() ? 0 : data_[at_++]; }
  double Double() {
    uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8 | Next();
    return std::bit_cast<double>(bits);
  }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

// What is done to a row in the steps that follow.
struct Edit {
  uint8_t kind = 0;
  double value = 1;
};

double Edited(const Edit& edit, double value) {
  switch (edit.kind % 8) {
    case 1: return value * edit.value;
    case 2: return edit.value;
    case 3: return 0;
    case 4: return std::nan("");
    case 5: return std::numeric_limits<double>::infinity();
    case 6: return -value;
    default: return value;
  }
}

// Each byte pair is an edit of a row, or so many steps of a healthy run with the edits.
RunJudge Judged(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  const size_t ranks = 1 + bytes.Next() % 4, tables = 1 + bytes.Next() % kTables;
  const uint8_t odd = bytes.Next();
  JudgeOptions options;
  options.from_step = bytes.Next() % 4 == 0 ? 300 : 0;
  RunJudge judge(options);
  std::vector<Edit> edits(ranks * tables * kRows);
  uint32_t random = 1;
  const size_t most_steps = std::min(kMostSteps, kMostPuts / edits.size());
  int64_t step = 0;
  size_t taken = 0;
  while (!bytes.empty() && taken < most_steps) {
    const uint8_t op = bytes.Next();
    Edit& edit = edits[bytes.Next() % edits.size()];
    if (op % 4 == 1) {
      edit.kind = bytes.Next();
      edit.value = edit.kind % 16 < 8 ? 1 + bytes.Next() / 16.0 : bytes.Double();
    } else if (op % 4 == 2) {
      step += static_cast<int8_t>(bytes.Next());  // a resumed run repeats steps, or leaves some out
    }
    for (int i = 0; i < (op % 4 == 0 ? 1 + op : 1) && taken < most_steps; ++i, ++taken, ++step) {
      for (size_t place = 0; place < edits.size(); ++place) {
        const size_t rank = place / (tables * kRows), table = place / kRows % tables, row = place % kRows;
        if (edits[place].kind % 8 == 7) continue;  // it does not come
        const auto& columns = kColumns[odd >> table % 8 & 1 ? 1 + table % 3 : 0];
        random = random * 1664525 + 1013904223;
        const double value = std::exp(0.1 * (random >> 8) / 16777216.0 + static_cast<double>(table));
        const std::vector<double> values(columns.size(), Edited(edits[place], value));
        const std::string name = row == 0 ? "" : "layers." + std::to_string(row) + ".weight";
        judge.Put(judge.AddRow({rank, kNames[table], 0, name, -1}, columns), values);
      }
      judge.EndStep(step);
    }
  }
  return judge;
}

void CheckEvents(const RunJudge& judge) {
  JudgedDirectory judgement;
  judgement.ranks = std::max<size_t>(judge.ranks(), 1);
  judgement.events = WhoBegan(judge);
  judgement.rows.assign(judge.rows().begin(), judge.rows().end());
  fuzz::Check(judgement.events.size() <= kMostEvents, "not more events than are shown");
  for (const RowChange& c : judge.changes()) {
    fuzz::Check(c.row < judge.rows().size() && !std::isnan(c.change.strength), "a change is of a row");
  }
  for (const JudgedEvent& event : judgement.events) {
    fuzz::Check(!event.evidence.empty() && event.evidence.size() <= kShownEvidence, "an event has evidence");
    fuzz::Check(event.alarms >= 1 && event.alarms <= event.changes, "an event has an alarm");
    for (const size_t rank : event.ranks) fuzz::Check(rank < judge.ranks(), "a rank that there is");
    fuzz::Check(!event.culprit || !event.rank_undecided, "a rank is named or cannot be told");
    fuzz::Check(!(event.culprit && judge.ranks() < 2), "one rank alone is not blamed");
    const std::string line = EventJson(event, judgement);
    fuzz::Check(line.find('\n') == std::string::npos, "an event is one line");
  }
  fuzz::Check(!JudgementText(judgement).empty(), "it can be said");
}

void JudgeFile(const uint8_t* data, size_t size) {
  const fuzz::MemoryFile input(data, size);
  auto file = SeriesFile::Open(input.path());
  if (!file.ok()) {
    fuzz::CheckRefusal(file.status());
    return;
  }
  RunJudge judge({});
  SeriesFeed feed(0);
  for (size_t block = 0; block < file->blocks(); ++block) {
    feed.Put(*file, block, &judge);
    const int64_t step = file->block(block).step;
    if (block + 1 == file->blocks() || file->block(block + 1).step != step) judge.EndStep(step);
  }
  CheckEvents(judge);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size >= kSeriesMagic.size() && std::memcmp(data, kSeriesMagic.data(), kSeriesMagic.size()) == 0) {
    JudgeFile(data, size);
    return 0;
  }
  if (size > 512) return 0;
  const RunJudge judge = Judged(data, size);
  CheckEvents(judge);
  const RunJudge again = Judged(data, size);
  fuzz::Check(again.changes().size() == judge.changes().size(), "the same values give the same changes");
  return 0;
}
