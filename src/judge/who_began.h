// Which layer, metric and rank a change of a training began with, and how long before the loss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "judge/law_file.h"
#include "judge/run_judge.h"

namespace msprobe {

/// What belongs together in time: the first alarm, and what changed about it.
struct JudgedEvent {
  int64_t told = 0;                 // the step of the first alarm
  int64_t onset = 0;                // where it began
  std::vector<RowChange> evidence;  // who began first; at most kShownEvidence
  size_t alarms = 0, changes = 0;
  struct Metric {
    RowChange first;
    size_t series = 0;  // that changed
  };
  std::vector<Metric> metrics;       // what changed about it, each metric once
  double harm = 0;                   // how far the loss and all else went, on the logarithm
  std::optional<double> loss_times;  // the highest loss from its beginning on, over those before

  Detector detector = Detector::kSpike;
  std::string table, column;        // what changed first
  std::vector<std::string> layers;  // modules or parameters; empty with `all_layers`
  std::string place;                // what they have in common: a module; empty: the whole model
  bool all_layers = false;
  std::vector<size_t> ranks;         // that show it
  std::optional<int64_t> culprit;    // the guilty rank
  bool rank_undecided = false;       // replicas differ, and there is no majority
  double before = 0, after = 0;      // of the first of the evidence
  double factor = 0;                 // after / before where that says something; else 0
  std::optional<int64_t> loss_step;  // where the loss shows it
  std::vector<BrokenLaw> laws;       // that broke about this time
  bool law_first = false;            // a law began it: the first of them
  bool by_law = false;               // no series shows it: the table is "law", the column the name of the law
  std::optional<int64_t> lead() const { return loss_step ? std::optional(*loss_step - onset) : std::nullopt; }
};
inline constexpr size_t kShownEvidence = 12, kMostEvents = 20;

/// "layers.1.self_attn.q_proj" of a parameter or of an input or output of a module.
std::string LayerOf(const RowName& row);

/// What people know as one metric: parameters before and after a step are the parameters.
std::string MetricOf(const std::string& table);

/// Steps without an alarm after which the next one is another event.
inline constexpr int64_t kEventSpan = 60;

/// In the order in which they began; only those with alarms from a step on.
std::vector<JudgedEvent> WhoBegan(const RunJudge& judge, int64_t from_step = INT64_MIN);

}  // namespace msprobe
