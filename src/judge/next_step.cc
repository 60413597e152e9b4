// What to do about the event that does most harm: a command made of what was recorded, and none that was given already.
#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/message.h"
#include "base/words/shell_word.h"
#include "judge/judge_directory.h"

namespace msprobe {
namespace {

constexpr int64_t kAround = 20;  // steps that are shown

// Of a jump, and of a law about it, the values say all.
std::string_view SeriesToShow(const JudgedEvent& event) {
  const std::string_view law = event.by_law || event.law_first ? event.laws.front().law : std::string_view();
  if (law == "lr_schedule" || (law.empty() && event.table == "learning_rate")) return "learning_rate";
  if (law.empty() && event.table == "loss_factor") return "loss_factor";
  return "";
}

}  // namespace

Message NextText(const JudgedDirectory& judgement) {
  if (judgement.events.empty()) return {};
  const JudgedEvent& event = judgement.events.front();
  std::string directory = judgement.directory;
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  const int64_t before = std::max<int64_t>(event.onset - 1, 0);
  if (const std::string_view series = SeriesToShow(event); !series.empty() && judgement.HasTable(series)) {
    return Message(fmt::format("msprobe monitor show {} --metric {} --steps {}-{}", ShellWord(directory), series,
                               std::max<int64_t>(event.onset - kAround, 0), event.onset + kAround));
  }
  const std::string dump = fmt::format("{}_step{}", directory, event.onset);
  const std::string good = fmt::format("{}/step{}", dump, before), bad = fmt::format("{}/step{}", dump, event.onset);
  if (!IsDirectory(bad)) {
    const std::string steps =
        before == event.onset ? fmt::format("{}", before) : fmt::format("{}-{}", before, event.onset);
    const bool of_batch = event.table == "model_input" && !event.law_first;
    const std::string batches = of_batch ? " --save-batches " + ShellWord(dump + "_batches") : "";
    return Message(fmt::format("msprobe run --level mix --step {} --dump-path {}{} -- {}", steps, ShellWord(dump),
                               batches, judgement.command.empty() ? "COMMAND" : judgement.command));
  }
  if (event.detector == Detector::kNotFinite && !event.by_law) {
    return Message(fmt::format("msprobe overflow_check -i {}", ShellWord(dump)));
  }
  const std::string out = dump + "_compare";
  if (!IsDirectory(good) || good == bad || IsDirectory(out)) return {};
  return Message(fmt::format("msprobe compare -tp {} -gp {} -o {}", ShellWord(bad), ShellWord(good), ShellWord(out)));
}

}  // namespace msprobe
