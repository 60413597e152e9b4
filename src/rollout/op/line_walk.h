// Both sides along the line of a model: where they first part by more than what rounding and what came before explain.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rollout/op/explain_op.h"

namespace msprobe {

struct PointDifference {
  PointPlace place;
  double error = 0, mean = 0;  // of rows; relative
  double before = 0;           // of what it is computed from
  double floor = 0;            // what rounding may add
  DType train = DType::kUnknown, rollout = DType::kUnknown;
  bool other_cut = false;  // all that reads it agrees: the sides divide the same computation otherwise
};

struct LineFault {
  PointDifference difference;
  OpHow how;
  double own = 0;         // error against what it should have made of its own inputs; `difference.error` without that
  bool replayed = false;  // `own` is that
  bool weights = false;   // its weights differ between the sides
  std::string module;     // as the engine calls it
  uint32_t sequence = 0;  // of the worst row
  int64_t position = 0;
  std::optional<double> share;  // of the gap between log-probabilities
};

struct LineFindings {
  std::vector<PointDifference> points;  // that both sides have
  std::vector<PointPlace> unseen;       // that one side has alone
  std::optional<LineFault> fault;
  size_t tokens = 0;   // that were looked at
  size_t flipped = 0;  // of them, those left out behind others that other experts were chosen for
  int64_t flipped_layer = -1;
  int64_t layers = 0;
  std::optional<std::pair<DType, DType>> head;  // precision of the logits of both sides, where it is not the same
};

/// `shards`: ranks of the engine that hold further parts of the same tensors.
LineFindings WalkLine(const SideOps& train, const SideOps& rollout, const TokenPairs& pairs,
                      const std::vector<const SideOps*>& shards = {});

}  // namespace msprobe
