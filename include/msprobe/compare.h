// `msprobe compare` for programs.
#pragma once

#include <msprobe/export.h>
#include <msprobe/status.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace msprobe {

/// Which op stands against which where names alone do not say it. A mapping without a file is "": the default of its
/// kind.
struct MappingSettings {
  bool fuzzy = false;                           // match ops in order, whatever their call numbers
  std::optional<std::string> cell, api, layer;  // files of the mapping, or ""
  std::optional<std::string> data;              // file: full item name of the target: of the golden run
  std::string layer_template;                   // a layer mapping that comes with the command, by its name; ""
  bool consistent_check = false;                // training against inference
  std::string backend;                          // of the training: "fsdp" or "megatron"
};

struct CompareSettings {
  std::string target, golden;       // dump.json, or a rank, step or dump directory; both of one kind
  std::string output = "./output";  // directory of the results
  bool xlsx = false;                // a workbook instead of csv
  bool highlight = false;           // of a workbook: rows in colour and the reasons, as -hl of older releases
  bool html = false;                // also one HTML report, which needs nothing else to be looked at
  bool plain = false;               // write the files of mindstudio-probe only: no first_divergence.json
  bool advisor = false;             // also advisor_*.txt, as the older command form writes
  bool older_columns = false;       // tensor and md5 tables: "Accuracy Reached or Not", Pass and Different, as 8.x has
  bool without_grads = false;       // with older_columns: no columns of requires_grad, as 8.1.1 has for MindSpore
  bool stacks = true;               // the column of call stacks, where there is a stack.json
  std::string stack_file;           // of two files: another stack.json than that beside the target
  bool diff_analyze = false;        // -da: ops as JSON instead of a table, and the first that differ by thresholds
  std::string repro;                // directory for a script that replays the op of the first difference; ""
  /// Tensor dumps: so many ops at most (0: none) are called again in float64, to say which side is nearer to the truth.
  /// Needs a Python with torch.
  size_t replay = 0;
  MappingSettings mapping;
  std::string thresholds;       // YAML file of the numbers by which rows are judged; "" for the default
  bool ruler = false;           // columns at the end of each row: its difference in units of what rounding explains
  bool verdicts = false;        // the same in what is made to be looked at: workbooks and the HTML report
  std::string calibrate;        // dump of a second golden run, of the same kind of path as `golden`; ""
  bool structure = false;       // the models instead of the values; dumps of task "structure" are compared so anyway
  std::string suggest_mapping;  // file for a layer mapping of modules that only their names tell apart; ""
  bool unmatched = false;       // also a table of all ops without a partner
  /// Instead of a table for each pair one for all, of the rows that are neither bit-equal, round-off nor inherited, and
  /// a line for each rank. Ranks whose files equal those of another one are not compared again.
  bool differing = false;
  std::string ranks;                        // only these: "0,3,8-15"; "" for all
  uint64_t out_limit = uint64_t{10} << 30;  // bytes that may be written; 0 for no limit
  std::string custom_metric;  // tensor dumps: a Python file, or a directory of them, whose metrics become columns
  std::string postprocess;    // tensor dumps: YAML file of matrices that tensors are multiplied with before; ""
  // The functions below may be empty. Pairs are compared side by side: calls come from any thread, one at a time.
  /// Called with the share of the first pair that still runs.
  std::function<void(const std::string& pair, double share)> progress;
  /// Called for the first pair, if it is large, before it is read: a line about its first ops.
  std::function<void(const std::string& pair, const Message& line)> glance;
  /// Called once for a long comparison, as soon as it is known where its pair differs first.
  std::function<void(const std::string& pair, const Message& difference)> early;
  /// Called before tables of many pairs are written: what will be, and with `differing` the answer.
  std::function<void(const Message& text)> before;
  std::function<void(const std::string& lines)>
      log;  // tensor dumps: a line for each row, as they are done; may be empty
};

struct ComparedPair {
  std::string target, golden;        // the two files
  std::vector<std::string> results;  // the files that were written
  uint64_t rows = 0, pass = 0, warning = 0, error = 0;
  uint64_t ops = 0, matched_ops = 0;
};

struct Comparison {
  std::vector<ComparedPair> pairs;
  std::vector<std::pair<std::string, Status>> failures;  // pairs that could not be compared
  std::string html;                                      // path of the HTML report; ""
  std::string text;                                      // the summary for people, with the first difference
  std::string json;                                      // the same for programs, as `msprobe compare --json` prints it
};

/// Fails when no pair could be compared.
MSPROBE_API StatusOr<Comparison> CompareDumps(const CompareSettings& settings);

}  // namespace msprobe
