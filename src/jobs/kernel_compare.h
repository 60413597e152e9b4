// `msprobe compare --rank --step`: kernel dumps of MindSpore, a table for each step of each rank.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "diagnose/story/story.h"

namespace msprobe {

struct KernelSettings {
  std::string target, golden, output;
  std::vector<int> ranks, steps;  // only these; empty: all
  bool xlsx = false;
  bool plain = false;  // without the column of sources, which the earlier tool does not have
};

struct KernelTable {
  int rank = 0, step = 0;
  std::string path;
  bool tensors = false;  // values were compared, else statistics
  uint64_t rows = 0, target_only = 0, golden_only = 0;
  uint64_t yes = 0, no = 0;  // "Accuracy Reached or Not"
  uint64_t unread = 0;       // rows of which a file could not be read
};

/// In which order the two runs launched the kernels of a graph.
struct KernelOrders {
  int rank = 0;
  std::string graph;
  size_t target_kernels = 0, golden_kernels = 0;
  bool same = false;
  size_t first = 0;            // where they are different first
  std::string target, golden;  // the kernels that are there, with their scopes; "" behind the end
};

struct KernelReport {
  std::vector<KernelTable> tables;
  std::vector<std::pair<std::string, Status>> failures;  // "rank 0, step 3": why it has no table
  std::vector<KernelOrders> orders;                      // of graphs that both have one of
  std::vector<Message> warnings;
  Story story;  // over all steps and ranks
};

/// Writes compare_result_{rank}_{step}_TIME.csv (or .xlsx) for each step that both have. kBadInput when there is none.
StatusOr<KernelReport> CompareKernels(const KernelSettings& settings);

Message KernelReportText(const KernelReport& report);
std::string KernelReportJson(const KernelReport& report);

}  // namespace msprobe
