// How an operation of the engine differs from the trainer's: what undone leaves nothing but rounding.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/message.h"
#include "rollout/op/op_replay.h"

namespace msprobe {

struct OpHow {
  std::string kind;    // "norm_eps", "rotary_base", ...: for programs; "" where it is not known
  Message words;       // "eps 0.01 in place of 1e-06"
  double left = 0;     // of the error, when it is undone
  bool undone = true;  // false: `words` say what all that is wrong has in common, and nothing was computed without it
  bool found() const { return !kind.empty(); }
};

/// `expected`: what should have come out, for the inputs that the engine had where that is known, else the trainer's.
struct OpCase {
  PointPlace place;
  const OpReplay* replay = nullptr;
  RowMatrix seen, expected;
  double error = 0;      // of the one against the other
  double tolerance = 0;  // what counts as undone
};

OpHow ExplainOp(const OpCase& one);
/// An eps that changes every element by less than rounding does, and all of them alike.
OpHow ExplainSmallEps(const OpCase& one, double unit);
/// Of what attention is given: queries or keys, turned by their positions.
/// `shifted`: rows of the trainer so many positions further on in the same sequences, their own where none is.
OpHow ExplainRotaryOp(const OpCase& one, const std::vector<int64_t>& positions,
                      const std::function<std::vector<TokenRow>(int64_t by)>& shifted);
/// For values of any op: a factor, a constant, columns in another order, a coarser type.
OpHow ExplainValues(const OpCase& one);

/// What attention of both sides was given for one sequence, and its queries among the rows that are looked at.
struct AttentionCase {
  AttentionInput train, rollout;
  double tolerance = 0;
  double unit = 0;  // of the coarsest type on the way
};
/// `local`: whether the engine's attention is not the trainer's with its own inputs; nothing where the tool cannot
/// compute the trainer's either.
OpHow ExplainAttention(const AttentionCase& one, std::optional<bool>* local);

}  // namespace msprobe
