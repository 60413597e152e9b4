// Which op is the first to give NaN or an infinity, on which rank, and what became of it.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/overflow_flow.h"

namespace msprobe {

/// An op to name, with what a reader of the report wants to see of it.
struct OverflowOp {
  int rank = 0;
  std::string name;
  std::string module;           // around a function; "" if not known
  std::string frame, function;  // "model.py:93" and the function, the user's innermost; "" if not known
};

struct OverflowFinding {
  OverflowSource::Kind kind = OverflowSource::Kind::kOp;
  std::vector<OverflowOp> ops;  // one; of a collective those of all ranks
  std::string reader;           // the op that first took it in, where that is another one
  std::string item;             // ".output.0", ".parameters.weight": the first bad one
  std::string item_text;        // "float32 [2, 32], max inf, min -3.1, mean nan"
  std::vector<std::pair<std::string, std::string>> inputs, outputs;  // item, its description
  std::string mask;                                                  // the op whose -inf it made NaN of
  std::string before;      // kInput: the last op before it that gives a tensor of that shape
  std::string history;     // of a parameter: since when it is bad
  bool leaf_grad = false;  // it wants a gradient, as parameters do
  bool constant = false;   // NaN or an infinity is an argument
  size_t carriers = 0, absorbers = 0;
  bool absorbed = false;  // nothing of it is left
  std::vector<OverflowOp> absorbed_at;
  std::vector<OverflowOp> reached;  // the calls that brought it to other ranks
  struct Near {
    OverflowOp op;
    std::string item;
    double margin = 0;  // greatest number of the dtype over the largest magnitude
  };
  std::vector<Near> near;  // before it, on its rank: what came near overflow
  size_t by_identity = 0, by_statistics = 0, by_shape = 0, by_order = 0;
};

struct OverflowReport {
  std::string input, step;                  // "step3"; "" for a single file
  size_t steps = 0, ranks = 0;              // looked at
  std::vector<OverflowFinding> first;       // to name; empty when nothing was found
  std::vector<OverflowFinding> absorbed;    // others, that left nothing behind; the first few
  size_t masks = 0;                         // sources of -inf that are there on purpose
  std::vector<OverflowFinding::Near> near;  // when nothing was found: the nearest to overflow
  enum class Phase : uint8_t { kBefore, kDuring, kAfter } phase = Phase::kBefore;  // of communication
  std::string nodes;  // the text of the result file; "" when nothing was found
  std::vector<std::string> warnings;
};

/// Looks through a dump.json, a rank, a step, or the steps of a dump up to the first that goes wrong. All ranks of a
/// step are open at once: about 60 bytes an op and 200 for each op that has a finding.
StatusOr<OverflowReport> FindOverflow(const std::string& path);

/// {"rank_0": [{"op_name": ..., "data_info": ..., "construct_info": ..., "stack_info": ...}]}
Status WriteOverflowNodes(const std::string& directory, const std::string& nodes, std::string* path);

/// `file` is where the nodes were written.
std::string OverflowText(const OverflowReport& report, const std::string& file);
std::string OverflowJson(const OverflowReport& report, const std::string& file);

}  // namespace msprobe
