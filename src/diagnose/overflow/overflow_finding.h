// A source of NaN or infinities as a reader of the report sees it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "diagnose/overflow/bad_since.h"
#include "diagnose/overflow/overflow_flow.h"

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
  OverflowOp use;               // kParameter: the function of the module that first took it in; no name: none did
  std::string use_item;         // as which of its items
  std::vector<std::pair<std::string, std::string>> inputs, outputs;  // item, its description
  std::string mask;                                                  // the op whose -inf it made NaN of
  Message mechanism;                                                 // why it makes them, where the figures prove it
  std::string before;      // kInput: the last op before it that gives a tensor of that shape
  BadSince since;          // of a parameter
  bool leaf_grad = false;  // it wants a gradient, as parameters do
  bool constant = false;   // NaN or an infinity is an argument
  size_t carriers = 0, absorbers = 0;
  bool absorbed = false;  // nothing of it is left
  bool unused = false;    // likewise, and it never was anything but infinities
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

}  // namespace msprobe
