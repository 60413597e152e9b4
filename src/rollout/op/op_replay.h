// What a module of either side should have made of what it was given, with the trainer's parameters.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "rollout/op/attention_fit.h"
#include "rollout/op/model_line.h"
#include "rollout/op/row_error.h"

namespace msprobe {

/// What a module computes from: points of the line before it.
std::vector<PointPlace> InputsOf(PointPlace place, int64_t layers);

/// What the rotary embedding of a side turns: queries or keys, normed where the model does that.
PointPlace TurnedFrom(const ModelLine& line, PointPlace place);
/// Each piece of `size` columns as a row of its own; empty where they are no whole number.
RowMatrix AsHeads(RowMatrix values, size_t size);

/// y = x * w / sqrt(mean(x^2) + eps), or with 1 + w.
struct NormFit {
  double eps = 0;
  bool plus_one = false;
  double error = 0;  // that is left, the largest of a row
  // eps relative to the mean square of a row: the middle of all rows, and how far rows usually lie from it. What rounds
  // every element at random leaves these alone.
  double relative = 0, spread = 0;
};
NormFit FitNorm(const RowMatrix& x, const std::vector<double>& w, const RowMatrix& y, bool plus_one);
RowMatrix Normed(const RowMatrix& x, const std::vector<double>& w, const NormFit& form);

/// The part of a gated layer between its products.
enum class GateForm : uint8_t { kSilu, kGelu, kGeluTanh, kRelu };
std::string_view NameOf(GateForm form);
RowMatrix Gated(const RowMatrix& gate, const RowMatrix& up, GateForm form);

/// One side's rows of the tokens that are looked at.
struct SideRows {
  const ModelLine* line = nullptr;
  std::vector<TokenRow> rows;
  RowMatrix Read(PointPlace place) const { return line->Read(place, rows); }
};

/// How a replay went.
struct Replayed {
  RowMatrix expected;
  double error = 0;      // of what the side recorded, against it
  double tolerance = 0;  // what rounding may leave of it
};

class OpReplay {
 public:
  OpReplay(SideRows train, SideRows rollout, int64_t layers)
      : train_(std::move(train)), rollout_(std::move(rollout)), layers_(layers) {}

  const SideRows& train() const { return train_; }
  const SideRows& rollout() const { return rollout_; }
  int64_t layers() const { return layers_; }

  /// Nothing where the tool does not know how, or too little is recorded; also where the trainer's own values are not
  /// what comes out, for then the tool does not know how either.
  std::optional<Replayed> OfRollout(PointPlace place, double tolerance) const;

  /// The bias, and what the trainer's module makes of the rollout's inputs without one.
  std::vector<double> BiasOf(PointPlace place) const { return train_.line->Parameter(place, "bias").values; }
  std::vector<double> WeightOf(PointPlace place) const;

 private:
  RowMatrix Expected(const SideRows& side, PointPlace place) const;
  RowMatrix Linear(const SideRows& side, PointPlace place, PointPlace input) const;
  RowMatrix Sum(const SideRows& side, PointPlace place) const;
  RowMatrix Turned(const SideRows& side, PointPlace place) const;
  RowMatrix Act(const SideRows& side, PointPlace place) const;

  SideRows train_, rollout_;
  int64_t layers_;
};

}  // namespace msprobe
