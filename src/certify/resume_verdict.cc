#include "certify/resume_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/message.h"
#include "certify/resume_numbers.h"
#include "certify/resume_states.h"

namespace msprobe {
namespace {

struct KindWord {
  std::string_view kind, word;
};

// In the order in which they are told.
constexpr std::array<KindWord, 17> kKinds{{
    {"parameter", "parameters of the model"},
    {"buffer", "buffers of the model"},
    {"batch_norm", "statistics of normalization layers"},
    {"gradient", "gradients accumulated so far"},
    {"optimizer", "state of the optimizer"},
    {"hyperparameter", "hyperparameters of the optimizer"},
    {"scheduler", "learning-rate scheduler"},
    {"scaler", "loss scaler"},
    {"module", "averaged weights or another model"},
    {"object", "object with a state_dict"},
    {"tensor", "tensors of the script"},
    {"trainer", "state of the trainer"},
    {"mode", "training mode or frozen parameters"},
    {"random", "random state"},
    {"data", "position or order of the data"},
    {"sampler", "sampler"},
    {"number", "numbers of the script"},
}};

std::vector<std::string> TextsAt(const JsonValue* v, std::string_view key) {
  std::vector<std::string> out;
  const JsonValue* list = MemberOf(v, key);
  if (list == nullptr || !list->IsArray()) return out;
  for (const JsonValue& item : list->Items()) {
    if (item.IsString()) out.emplace_back(item.Text());
  }
  return out;
}

/// Bound to nothing yet: the variable, or one that it is part of, is None or empty.
bool IsUnset(const JsonValue* kinds, std::string_view name) {
  const JsonValue* numbers = MemberOf(kinds, "number");
  while (true) {
    const std::string value = TextAt(numbers, name);
    if (value == "None" || value == "empty") return true;
    const size_t dot = name.rfind('.');
    if (dot == std::string_view::npos) return false;
    name = name.substr(0, dot);
  }
}

struct Sides {
  const JsonValue *straight, *killed, *resumed, *first;  // states; of the first step of the training
};

/// Collects the names of a kind that are not as they were.
class KindJudge {
 public:
  KindJudge(std::string_view kind, const Sides& sides, RankResume* result)
      : kind_(kind), sides_(sides), result_(result) {
    state_.kind = kind;
  }

  /// One name only, where each is told by itself.
  void RunOne(const std::string& name) { Judge(name); }

  void Run() {
    const JsonValue *was = MemberOf(sides_.killed, kind_), *is = MemberOf(sides_.resumed, kind_);
    if (was != nullptr && was->IsObject()) {
      for (const auto& member : was->Members()) Judge(std::string(member.name));
    }
    if (kind_ != "mode" || is == nullptr || !is->IsObject()) return;
    for (const auto& member : is->Members()) {
      if (MemberOf(was, member.name) == nullptr) Note(std::string(member.name), "", TextAt(is, member.name));
    }
  }

  LostState Take() {
    // Of a schedule that follows a metric these decide, and its count of calls does not.
    std::stable_partition(state_.names.begin(), state_.names.end(), [](const LostName& n) {
      const std::string_view leaf = std::string_view(n.name).substr(n.name.rfind('.') + 1);
      return leaf == "best" || leaf == "num_bad_epochs" || leaf == "cooldown_counter";
    });
    return std::move(state_);
  }

 private:
  bool loose() const { return kind_ == "tensor" || kind_ == "number"; }

  void Judge(const std::string& name) {
    const std::string was = TextAt(MemberOf(sides_.killed, kind_), name);
    const std::string is = TextAt(MemberOf(sides_.resumed, kind_), name);
    if (loose() && !Evolves(name, was)) return;
    ++result_->compared;
    if (was == is) return;
    if (TextAt(MemberOf(sides_.straight, kind_), name) != was) {
      // An unseeded generator that nobody draws from is no state.
      if (TextAt(MemberOf(sides_.first, kind_), name) != was) {
        result_->unjudged.push_back(fmt::format("{} {}", StateWord(kind_), name));
      }
      return;
    }
    if (is == kMissingState && loose() && !IsUnset(sides_.resumed, name)) return;
    if (is == kMissingState && kind_ == "random") return;
    Note(name, was, is);
  }

  /// What a script leaves alone from the first step on is no state that it carries along.
  bool Evolves(const std::string& name, const std::string& was) const {
    const std::string first = TextAt(MemberOf(sides_.first, kind_), name);
    return first == kMissingState ? IsUnset(sides_.first, name) : first != was;
  }

  void Note(const std::string& name, const std::string& was, const std::string& is) {
    state_.names.push_back({name, was, is, TextAt(MemberOf(sides_.first, kind_), name) == is});
  }

  std::string_view kind_;
  const Sides& sides_;
  RankResume* result_;
  LostState state_;
};

/// True if a generator of PyTorch was as it had been when an iterator of a data loader was made, which draws from it.
bool IteratorsDrew(const JsonValue& killed, const JsonValue& resumed, bool* order) {
  const std::vector<std::string> known = TextsAt(&killed, "torch_states");
  const std::set<std::string> states(known.begin(), known.end());
  const JsonValue* iterators = resumed.Find("iterators");
  if (iterators == nullptr || !iterators->IsArray()) return false;
  bool drew = false;
  for (const JsonValue& iterator : iterators->Items()) {
    const std::vector<std::string> before = TextsAt(&iterator, "before");
    if (!std::any_of(before.begin(), before.end(), [&](const auto& s) { return states.contains(s); })) continue;
    drew = true;
    const JsonValue* draws = MemberOf(&iterator, "draws_order");
    *order = *order || (draws != nullptr && draws->IsBool() && draws->Bool());
  }
  return drew;
}

/// Whether states were taken inside of a step, where the script saved.
bool IsInside(const JsonValue* entry) {
  const JsonValue* inside = MemberOf(entry, "inside");
  return inside != nullptr && inside->IsBool() && inside->Bool();
}

struct DataSides {
  const JsonValue *straight, *killed, *resumed;  // entries of "before"
};

/// The batch of the first step after the resume.
std::optional<LostState> JudgeData(const JsonValue& killed_run, const DataSides& sides, int64_t save_at,
                                   RankResume* result) {
  const auto was = TextsAt(sides.killed, "batch"), is = TextsAt(sides.resumed, "batch");
  if (IsInside(sides.killed)) {
    result->unjudged.emplace_back("position or order of the data: the script saves inside of a step");
    return std::nullopt;
  }
  if (was.empty() && is.empty()) {
    result->unjudged.emplace_back("position or order of the data: the model is called without tensors");
    return std::nullopt;
  }
  ++result->compared;
  if (was == is) return std::nullopt;
  // What a script makes of a batch depends on other states, too.
  const auto loaded = TextsAt(sides.killed, "loaded");
  if (!loaded.empty() && loaded == TextsAt(sides.resumed, "loaded")) return std::nullopt;
  if (TextsAt(sides.straight, "batch") != was) {
    result->unjudged.emplace_back("position or order of the data");
    return std::nullopt;
  }
  LostState lost{
      .kind = "data",
      .names = {{"the first batch", was.empty() ? "" : was[0], is.empty() ? std::string(kMissingState) : is[0], false}},
      .explanation = {}};
  for (int64_t step = 0; step < save_at; ++step) {
    if (TextsAt(BeforeStep(killed_run, step), "batch") != is) continue;
    lost.names[0].first = step == 0;
    lost.explanation = fmt::format("the batch of step {} comes again", step);
    return lost;
  }
  const int64_t before = IntAt(sides.killed, "fetched"), now = IntAt(sides.resumed, "fetched");
  if (before != now) {
    lost.explanation = fmt::format("it is batch {} of its iterator and was batch {}", now, before);
  }
  return lost;
}

/// Each generator by itself.
void JudgeRandom(const Sides& sides, bool drew, RankResume* result) {
  const JsonValue* was = MemberOf(sides.killed, "random");
  if (was == nullptr || !was->IsObject()) return;
  for (const auto& member : was->Members()) {
    KindJudge judge("random", sides, result);
    judge.RunOne(std::string(member.name));
    LostState state = judge.Take();
    if (state.names.empty()) continue;
    const bool of_torch = state.names[0].name == "torch" || state.names[0].name.starts_with("Generator of ");
    if (of_torch && drew) state.explanation = "it was restored, then a new iterator of the data loader drew from it";
    (of_torch && drew ? result->drawn : result->lost).push_back(std::move(state));
  }
}

/// A generator that draws batches, or what is done to them.
bool LostRandom(const RankResume& result) {
  return std::any_of(result.lost.begin(), result.lost.end(), [](const LostState& s) { return s.kind == "random"; });
}

void JudgeStates(int64_t save_at, const JsonValue& straight, const JsonValue& killed, const JsonValue& resumed,
                 RankResume* result) {
  const DataSides before{BeforeStep(straight, save_at), BeforeStep(killed, save_at), BeforeStep(resumed, save_at)};
  const Sides sides{MemberOf(before.straight, "states"), MemberOf(before.killed, "states"),
                    MemberOf(before.resumed, "states"), MemberOf(BeforeStep(killed, 0), "states")};
  bool order = false;
  const bool drew = IteratorsDrew(killed, resumed, &order);
  auto data = JudgeData(killed, before, save_at, result);
  for (const auto& [kind, word] : kKinds) {
    if (kind == "data") {
      if (!data) continue;
      if (data->explanation.empty() && LostRandom(*result)) {
        result->unjudged.emplace_back("position or order of the data: it follows from the random state that was lost");
        continue;
      }
      // The same number of batches in another order that the new iterator has drawn.
      const bool redrawn = drew && order && data->explanation.empty();
      if (redrawn) data->explanation = "the new iterator drew another order from the global generator";
      (redrawn ? result->drawn : result->lost).push_back(*data);
      continue;
    }
    if (kind == "random") {
      JudgeRandom(sides, drew, result);
      continue;
    }
    KindJudge judge(kind, sides, result);
    judge.Run();
    LostState state = judge.Take();
    if (state.names.empty()) continue;
    const bool weak = kind == "number" || (kind == "sampler" && !data);
    (weak ? result->suspects : result->lost).push_back(std::move(state));
  }
}

/// Of two runs the steps before the script saves.
std::optional<RunDifference> DifferenceBefore(int64_t save_at, const JsonValue& straight, const JsonValue& killed) {
  auto found = CompareDigests(straight, killed);
  if (found && found->what == "number of steps") found.reset();
  if (found && found->step >= save_at) found.reset();
  return found;
}

}  // namespace

std::string_view StateWord(std::string_view kind) {
  const auto found = std::find_if(kKinds.begin(), kKinds.end(), [&](const KindWord& k) { return k.kind == kind; });
  return found == kKinds.end() ? kind : found->word;
}

StatusOr<RankResume> JudgeResume(const std::string& rank, int64_t save_at, const JsonValue& straight,
                                 const JsonValue& killed, const JsonValue& resumed) {
  RankResume result;
  result.rank = rank;
  for (const auto& [run, name] : {std::pair{&straight, "straight"}, {&killed, "killed"}, {&resumed, "resumed"}}) {
    const JsonValue* at = BeforeStep(*run, save_at);
    if (MemberOf(at, "states") != nullptr) continue;
    return BadInput(
        Msg("the {} run of {} did not begin step {}: let the script train some steps more than it had done when it "
            "saved, or choose another --save-at",
            name, rank, save_at));
  }
  JudgeStates(save_at, straight, killed, resumed, &result);
  result.inside = IsInside(BeforeStep(killed, save_at));
  result.before = DifferenceBefore(save_at, straight, killed);
  result.after = CompareDigests(straight, resumed, {.left_from = save_at, .random = false});
  const JsonValue* steps = resumed.Find("steps");
  result.steps = steps != nullptr && steps->IsArray() ? static_cast<int64_t>(steps->size()) : 0;
  if (result.after && result.after->what == "number of steps" && result.steps > 0) result.after.reset();
  JudgeNumbers(save_at, straight, killed, resumed, &result);
  if (result.before) {
    result.outcome = ResumeOutcome::kNotReproducible;
  } else if (!result.lost.empty()) {
    result.outcome = ResumeOutcome::kLost;
  } else if (!result.drawn.empty()) {
    result.outcome = result.perhaps.empty() ? ResumeOutcome::kFrameworkDraws : ResumeOutcome::kUndecided;
  } else if (result.after) {
    // What else differs must be it: first the numbers of objects that save other state.
    result.lost = std::move(result.perhaps);
    std::move(result.suspects.begin(), result.suspects.end(), std::back_inserter(result.lost));
    result.perhaps.clear();
    result.suspects.clear();
    result.outcome = result.lost.empty() ? ResumeOutcome::kUnexplained : ResumeOutcome::kLost;
  } else if (!result.perhaps.empty()) {
    result.outcome = ResumeOutcome::kUndecided;
  }
  return result;
}

}  // namespace msprobe
