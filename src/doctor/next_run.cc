#include "doctor/next_run.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/file.h"
#include "base/text.h"

namespace msprobe {
namespace {

constexpr std::string_view kYourCommand = "YOUR_TRAINING_COMMAND";

std::string Quoted(std::string_view word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

/// What starts a run again: its launch script, or a word to be replaced.
std::string ProgramOf(const RunFiles& run) {
  return run.scripts.empty() ? std::string(kYourCommand) : "bash " + Quoted(run.scripts.front());
}

/// A name that is free in the directory of the run.
std::string FreeName(const RunFiles& run, const std::string& name, const std::string& ending = {}) {
  const std::string own = name + run.side;
  std::string out = JoinPath(run.directory, own + ending);
  for (int i = 2; PathExists(out) && i < 1000; ++i) {
    out = JoinPath(run.directory, own + "_" + std::to_string(i) + ending);
  }
  return out;
}

std::set<int> RecordedSteps(const RunFiles& run) {
  std::set<int> out;
  for (const RunDump& dump : run.dumps) out.insert(dump.steps.begin(), dump.steps.end());
  return out;
}

/// Arguments that set a learning rate, for sed and for us.
constexpr std::string_view kRatePattern = "(--(lr|min[-_]lr|learning[-_]rate)[ =]+)[^ \\]+";

bool SetsRate(const std::string& script) {
  const auto file = MappedFile::Open(script);
  if (!file.ok()) return false;
  return std::ranges::any_of(
      std::array{"--lr ", "--lr=", "--learning-rate ", "--learning-rate=", "--learning_rate ", "--learning_rate="},
      [&](const char* argument) { return Contains(file->text(), argument); });
}

/// A run of the launch script with a learning rate of 0; "" where no argument of it is one. The changed script lies
/// beside its original, since scripts look for files around them, under a name that no later look takes for a script
/// of the run.
std::string FrozenCommand(const RunFiles& run) {
  if (run.scripts.empty() || !SetsRate(run.scripts.front())) return {};
  const std::string& script = run.scripts.front();
  const std::string changed = JoinPath(std::string(DirName(script)), ".lr0_" + std::string(BaseName(script)));
  return "sed -E " + Quoted("s/" + std::string(kRatePattern) + "/\\10/g") + " " + Quoted(script) + " > " +
         Quoted(changed) + " && bash " + Quoted(changed) + " 2>&1 | tee " + Quoted(FreeName(run, "lr0", ".log"));
}

/// " --save-batches DIR" where the run has none, ...
std::string BesidesOption(const RunFiles& run, Besides besides) {
  if (besides == Besides::kBatches && run.batches.empty())
    return " --save-batches " + Quoted(FreeName(run, "msprobe_batches"));
  if (besides == Besides::kOptimizer && run.optimizer_records.empty())
    return " --save-optimizer " + Quoted(FreeName(run, "msprobe_optimizer"));
  return {};
}

}  // namespace

std::string RecordConfig(const std::string& output) { return JoinPath(output, "record.json"); }

std::string RecordConfigText() {
  return "{\"task\": \"tensor\", \"level\": \"mix\", \"budget\": {\"disk\": \"20GB\"}}\n";
}

std::string StepList(const std::vector<int>& steps) {
  std::string out;
  for (const int step : steps) out += (out.empty() ? "" : ",") + std::to_string(step);
  return out;
}

NextRun RecordSteps(const DoctorEvidence& evidence, const std::vector<int>& steps, BothWords why, Besides besides) {
  NextRun out;
  out.why = std::move(why);
  std::vector<int> wanted = steps;
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  std::erase_if(wanted, [](int step) { return step < 0; });
  for (const RunFiles* run : {&evidence.a, &evidence.b}) {
    const std::set<int> there = RecordedSteps(*run);
    const bool all = std::all_of(wanted.begin(), wanted.end(), [&](int step) { return there.contains(step); });
    if (all) continue;
    out.commands.push_back("msprobe run --config " + Quoted(RecordConfig(evidence.output)) + " --dump-path " +
                           Quoted(FreeName(*run, "msprobe_dump")) + " --step " + StepList(wanted) +
                           BesidesOption(*run, besides) + " -- " + ProgramOf(*run));
  }
  return out;
}

NextRun SaveBatches(const DoctorEvidence& evidence, BothWords why) {
  NextRun out{std::move(why), {}};
  for (const RunFiles* run : {&evidence.a, &evidence.b}) {
    const std::string option = BesidesOption(*run, Besides::kBatches);
    if (!option.empty()) out.commands.push_back("msprobe run" + option + " -- " + ProgramOf(*run));
  }
  return out;
}

NextRun SaveOptimizer(const DoctorEvidence& evidence, BothWords why) {
  NextRun out{std::move(why), {}};
  std::string replay = "msprobe optimizer_replay";
  for (const RunFiles* run : {&evidence.a, &evidence.b}) {
    const bool there = !run->optimizer_records.empty();
    const std::string record = there ? run->optimizer_records.front() : FreeName(*run, "msprobe_optimizer");
    replay += " " + Quoted(record);
    if (there) continue;
    out.commands.push_back("msprobe run --save-grads " + Quoted(FreeName(*run, "msprobe_grads")) +
                           " --save-optimizer " + Quoted(record) + " -- " + ProgramOf(*run));
  }
  if (!out.commands.empty()) out.commands.push_back(replay);
  return out;
}

NextRun RunAgain(const DoctorEvidence& evidence, BothWords why) {
  const std::string log = FreeName(evidence.a, "again") + ".log";
  return {std::move(why), {ProgramOf(evidence.a) + " 2>&1 | tee " + Quoted(log)}};
}

std::optional<NextRun> RunFrozen(const DoctorEvidence& evidence, BothWords why) {
  NextRun out{std::move(why), {}};
  for (const RunFiles* run : {&evidence.a, &evidence.b}) {
    const std::string command = FrozenCommand(*run);
    if (command.empty()) return std::nullopt;
    out.commands.push_back(command);
  }
  return out;
}

NextRun RunGraft(const DoctorEvidence& evidence, const std::string& config, int step, BothWords why) {
  return {std::move(why),
          {"msprobe run --config " + Quoted(config) + " --dump-path " + Quoted(FreeName(evidence.b, "msprobe_graft")) +
           " --step " + std::to_string(step) + " -- " + ProgramOf(evidence.b)}};
}

std::optional<NextRun> Graft(const DoctorEvidence& evidence, int step, BothWords why) {
  if (!evidence.dumps.tensors) return std::nullopt;
  const auto prepared = PrepareGraft(evidence.a, evidence.b, step, {}, evidence.output);
  if (!prepared.ok()) return std::nullopt;  // the step stays undecided, as without it
  return RunGraft(evidence, prepared->config, step, std::move(why));
}

}  // namespace msprobe
