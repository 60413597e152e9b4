// What went wrong first in a whole run, over all ranks and steps: the answer that every surface gives first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/language.h"
#include "base/message.h"
#include "compare/round_off/ruler.h"
#include "diagnose/anatomy/anatomy.h"
#include "diagnose/overflow/bad_since.h"
#include "dump/gaps.h"

namespace msprobe {

struct Divergence;
struct FirstDifference;
struct Origin;
struct OverflowReport;

/// What kind of thing made it.
enum class Cause : uint8_t {
  kOp,             // the op itself: its inputs agree, or are clean
  kCollective,     // the call of several ranks itself: what they put in agrees, or is clean
  kReceived,       // it came from a rank without a dump, or without a difference
  kWeight,         // a parameter or buffer was different, or bad, before it was used
  kInput,          // data, or an op that is not recorded
  kCode,           // code of a module between its recorded ops
  kArgument,       // an argument of the call that is no tensor
  kMissingOp,      // the target lacks an op
  kExtraOp,        // the golden run lacks an op
  kShape,          // the runs are split differently
  kDType,          // nothing but a dtype differs
  kGrows,          // small differences add up, no op stands out
  kDraw,           // the runs drew other random numbers, and nothing else is known to differ
  kUninitialised,  // memory that was never written was read
  kMask,           // NaN of a mask's -inf
};
/// "weight", as JSON and tables have it.
std::string_view CauseName(Cause cause);

/// What made the difference that starts there.
Cause CauseOf(const Origin& origin);
/// Of a difference of one pair, before the ranks are joined.
Cause CauseOf(const FirstDifference& difference);

/// Where something begins.
struct StoryOrigin {
  Cause cause = Cause::kOp;
  bool overflow = false;           // NaN or infinities of the target, without regard to the golden run
  int step = -1;                   // -1: not known
  std::vector<int> ranks;          // the first one is where to look; empty: not known
  std::string op;                  // of the target; of kMissingOp of the golden run
  std::string module;              // "layers.1.mlp.linear_fc1"; "" if not known
  std::string module_class;        // "Linear"; "" if not known
  std::vector<std::string> fused;  // modules that the golden run computes as one with it: one of them is meant
  std::string frame, function;     // "model.py:93", the user's innermost line; "" if not known
  std::string item;                // "input.1"; "" for none
  std::string argument;            // "eps": the name that the function has for it; "" if not known
  bool unused = false;             // overflow: infinities of which nothing is left
  bool coarse = false;             // of kGrows: rounding adds up to so much by itself
  bool recomputed = false;         // in a part of the forward pass that runs once more for the backward pass
  bool buffer = false;             // kWeight: no parameter but a buffer
  bool other_call = false;         // kOp: the module takes other arguments: only what it gives was compared
  bool alone = false;              // kShape: one process made each dump
  double factor = 0;               // micro batches: the gradients over those of the golden run; 0: not known
  bool hidden = false;             // kInput, kCode: infinities that statistics do not show the places of
  std::string owner;               // the parameter that an op of the optimizer changes; "" if not known
  std::string parameter;           // kWeight: "weight"; "" if not known
  std::vector<int> copies;         // kWeight: ranks that had the same a step before, and no longer have
  std::string what;                // "Norm", "values", "shape", "checksum", "dtype", "value"; "" for none
  std::string target, golden;      // what it is on both sides
  double percent = -1;             // relative to the golden run; -1: it has no size
  RulerVerdict verdict = RulerVerdict::kNone;
  double units = 0;                     // in units of what rounding explains; may be infinite
  std::string inputs;                   // "are equal", "agree to 3.1e-07"; "" if not known
  std::string instead;                  // of a lone op: what the other run calls in its place; "" if nothing
  bool of_step = false;                 // kArgument: what the optimizer takes in; `item`: optimizer_intake.h
  size_t more_calls = 0;                // kArgument: calls of the function behind it whose arguments differ, too
  bool clips = false;                   // of a lone op: the norm by which only that run scales its gradients
  bool reordered = false;               // of an input: the same values in other places, by its statistics
  std::string made_by, golden_made_by;  // kInput: whose results came in on both sides; "" if not known
  bool gradient = false;                // kInput: a gradient, to a backward call or to what follows the backward pass
  bool kept = false;                    // kInput: the optimizer keeps it from step to step
  std::string exchanged_input;          // the other input of the call, with which it changed its place; "" for none
  std::string exchanged;                // kWeight: it has the values of this one, which has its own; "" if it is not so
  size_t exchanges = 0;                 // of these: pairs that are exchanged, too
  std::string other_op;                 // kCode: the last op that agrees; kMask: the op that put -inf in
  BadSince since;                       // overflow, kWeight
  int written_behind = -1;              // kWeight: this step agrees to its end; -1: not known
  bool update_unseen = false;           // of that step: its gradients agree, and its update was not recorded
  double update_ratio = 0;              // of that update, over that of the golden run; 0: not known
  uint64_t weights = 0;                 // of all that differ there
  std::optional<Anatomy> anatomy;       // how it is wrong, where that was looked for
  Message mechanism;                    // why the op makes it, where the figures prove it
  std::string drawn;                    // an op in front of it that drew other random numbers; "" if none did
  std::string replay;                   // what the op gives in float64, where that was asked for
};

/// How a rank came to it.
struct StoryReach {
  int rank = -1;
  std::vector<int> from;  // empty: not known
  std::string op;         // the call; "": through no recorded one
};

struct Story {
  enum class Outcome : uint8_t {
    kUnknown,   // nothing could be compared, or nothing is wrong in what was seen, which was not all
    kEqual,     // everything that was compared is bit-equal; of one run: all values are finite
    kRoundOff,  // differences that rounding explains
    kOrigin,    // something is wrong
  };
  Outcome outcome = Outcome::kUnknown;
  /// What was compared by mistake.
  struct Mistake {
    enum class Kind : uint8_t { kNone, kSamePath, kOtherStep, kOtherModel };
    Kind kind = Kind::kNone;
    std::string target, golden;  // steps; ops that only that run has
  };
  Mistake mistake;
  bool compared = true;              // false: one run by itself
  std::vector<StoryOrigin> origins;  // the cause, then those that do not follow from it
  std::vector<StoryReach> reached;
  uint64_t inherited = 0, forward = 0, backward = 0;      // ops that only pass it on
  std::vector<std::pair<std::string, uint64_t>> modules;  // the first of them, with their ops
  bool more_modules = false;
  RulerCounts ops;                            // of all pairs
  uint64_t target_only = 0, golden_only = 0;  // ops without a partner
  /// Modules with parameters that only one run calls, and modules in which nothing was recorded: path of each.
  std::vector<std::string> target_modules, golden_modules;
  uint64_t unrecorded = 0;
  std::string first_unrecorded;
  /// From where on nothing can be said: the same data in micro batches of another size, other random numbers.
  std::vector<StoryOrigin> cut;
  uint64_t other_forms = 0;      // modules whose weights are held in another form, so that what they give was compared
  std::string first_other_form;  // path of the first
  uint64_t divided = 0;         // ops on gradients that only one run divides so (divided_step.h): they are not compared
  size_t steps = 0, ranks = 0;  // looked at, of one run by itself
  std::vector<RecordingGap> gaps;  // recordings that are not whole
  uint64_t unseen = 0;             // ops of the other side that they may have had: no difference
  uint64_t unread = 0;             // rows whose tensors are missing, cut or not readable
  std::string first_unread;        // what is wrong with the first
  uint64_t not_compared = 0;       // pairs of files that could not be read or compared
  std::string first_not_compared;  // the first of them
  /// All that was given could be seen.
  bool whole() const { return gaps.empty() && unread == 0 && not_compared == 0; }
  /// Small differences add up and no op stands out, in half precision, in what an optimizer made of rounding, or on the
  /// way to a loss and gradients that agree: where they show is told, what made them is not known. Others of float32
  /// have a cause in that module.
  bool Drifts() const {
    return !origins.empty() && origins.front().cause == Cause::kGrows &&
           (origins.front().coarse || !origins.front().parameter.empty());
  }
  /// Nothing but infinities that nothing uses.
  bool Harmless() const {
    return !origins.empty() && std::all_of(origins.begin(), origins.end(), [](const auto& o) { return o.unused; });
  }
  /// What is equal as far as it was seen is not known to be equal.
  void Weigh();
};

/// The answer of a comparison; `ops` of all its pairs.
Story StoryOf(const Divergence& divergence, const RulerCounts& ops, uint64_t target_only, uint64_t golden_only);
/// The answer of a search for NaN and infinities in one run.
Story StoryOf(const OverflowReport& report);
/// A comparison that also looked for NaN and infinities: one origin where both name the same op.
void AddOverflow(const OverflowReport& target, const OverflowReport* golden, Story* story);

/// One line that says what made it, without names and values: "a parameter differs before it is used".
std::string CauseText(Cause cause, Language language);
/// One line of one origin: "layers.1.mlp.linear_fc1.weight differs by 25 % before it is used (rank 2, step 0)".
std::string OriginSentence(const StoryOrigin& origin, Language language);
/// One line, the cause first: "Origin: layers.1.mlp.linear_fc1.weight differs by 25 % before it is used (rank 2, step
/// 0)".
std::string StoryHeadline(const Story& story, Language language);
/// The headline and what is known beyond it, a sentence or two each.
std::vector<std::string> StoryLines(const Story& story, Language language);
/// The lines, those behind the first indented.
std::string StoryText(const Story& story, Language language);
/// All fields, and the lines in both languages: {"version": 1, "outcome": .., "origins": [..], .., "text": {"en": [..],
/// "zh": [..]}}. docs/en/compare/verdict.md describes it.
std::string StoryJson(const Story& story);
/// "origin", "equal", "round_off", "unknown".
std::string_view OutcomeName(const Story& story);

}  // namespace msprobe
