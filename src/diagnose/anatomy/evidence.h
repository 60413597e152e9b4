// What is kept of a pair of dumps to say later, when all ranks of the step are known, how its first difference is
// wrong.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compare/describe/differences.h"

namespace msprobe {

/// An op as it stands in its dump.
struct OpText {
  std::string name, json;
  bool empty() const { return json.empty(); }
};

/// Integers or truth values with one entry for each token: a mask, or ids.
struct TokenItem {
  std::string data_name, dtype;
  std::vector<int64_t> shape;
};

struct OriginEvidence {
  FilePair files;
  OpText target, golden;  // where the difference is seen
  std::string item;       // ".output.0": to be looked at first; "" if none is named
  bool results = false;   // look at what the op makes, else at what it starts from
  bool both = false;      // then at the other
  bool shapes = false;    // the runs are split differently here: an item is told only how its shape is wrong
  bool tensors = false;   // the dumps hold values
  OpText lone;            // the op that only one run has
  bool lone_in_golden = false;
  std::vector<OpText> calls;      // of the golden run: the same function or module, near the op
  std::vector<TokenItem> tokens;  // of the target
};

/// What else the run has.
struct AnatomyContext {
  std::vector<FilePair> ranks;    // of the step, all that are compared
  std::vector<FilePair> earlier;  // of the same rank: the step before, and the first one
};

/// Null where nothing begins, or where what is compared is made of several items.
StatusOr<std::shared_ptr<const OriginEvidence>> EvidenceOf(const DumpPair& pair, const FilePair& files,
                                                           const Differences& differences);

}  // namespace msprobe
