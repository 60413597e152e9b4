// dump_data.trend.db: the statistics of dumps over steps (or micro steps) and ranks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "dump/gaps.h"
#include "dump/reader.h"

namespace msprobe {

/// Parts of names to replace, in this order.
using TrendMapping = std::vector<std::pair<std::string, std::string>>;

struct TrendReport {
  std::string path;
  uint64_t rows = 0, targets = 0;
  int64_t max_rank = 0, min_step = 0, max_step = 0;
  std::vector<Message> warnings;
  std::vector<RecordingGap> gaps;  // of dumps that are not whole
  uint64_t left_out = 0;           // ranks of steps that could not be read, and rows that were cut
};

struct TrendSettings {
  std::string output;  // the file
  TrendMapping mapping;
  bool micro_steps = true;
};

/// `dump` is a dump, a step or a rank. Ranks that cannot be read are left out with a warning; kBadInput when none can.
StatusOr<TrendReport> WriteDumpTrend(const DumpPath& dump, const TrendSettings& settings);

enum class DumpMetric : uint8_t { kForward, kBackward, kRecompute, kParametersGrad, kNone };

/// What an op is called in the file: "Functional.linear.3.forward" is target Functional.linear, call 3, metric forward.
struct DumpTarget {
  DumpMetric metric = DumpMetric::kNone;
  std::string prefix;
  int64_t call = 0;
};
DumpTarget DumpTargetOf(std::string name, const TrendMapping& mapping, bool recomputed);

/// `name` with every `from` replaced by `to`.
void ReplaceAll(std::string* name, std::string_view from, std::string_view to);

}  // namespace msprobe
