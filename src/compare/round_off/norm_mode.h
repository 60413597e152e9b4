// Whether a batch norm computes with the statistics of its batch or with those that it keeps.
#pragma once

#include "compare/values/op_diff.h"

namespace msprobe {

enum class NormMode : uint8_t { kUnknown, kBatch, kKept };

struct NormModes {
  NormMode target = NormMode::kUnknown, golden = NormMode::kUnknown;
  bool AreOthers() const { return target != NormMode::kUnknown && golden != NormMode::kUnknown && target != golden; }
};

/// Of the forward call of such a module: over its batch each channel is centred, so that the mean of what it gives is
/// that of its offsets. Half precision, and norms without offsets, do not show it.
NormModes NormModesOf(const OpDiff& op);

/// Whether a parameter is a running statistic. Some tools, and MindSpore's Cells in older recordings, have them as the
/// call left them.
bool IsRunningStatistic(std::string_view parameter);
/// State of the model: a parameter, or a buffer that is handed to the op. Running statistics change no result of a norm
/// in training, but what they are is kept.
bool IsKept(std::string_view op, const ItemView& a, const ItemView& b);
/// Whether a function of a norm is given them there, where the dump does not say which buffer it is.
bool TakesRunningStatistic(std::string_view op, std::string_view item);

}  // namespace msprobe
