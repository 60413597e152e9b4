// Comparing the parameters of two matched nodes: the numbers, the verdict of each row and of the node.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compare/thresholds.h"
#include "graph/params.h"

namespace msprobe {

enum class GraphMode : uint8_t { kSummary = 0, kMd5 = 1, kTensor = 2, kStructure = 3 };
std::string_view ModeName(GraphMode mode);  // "summary", "md5", "all", "structure"

enum class Level : uint8_t { kPass, kWarning, kError };
std::string_view LevelName(Level level);

/// A difference: a number, or a text where there is none ("N/A", "Nan", "inf\t").
struct Difference {
  Value value = Value::Of(std::string_view("N/A"));
  Value relative = Value::Of(std::string_view("N/A"));  // in percent when it is a number
  std::string wide;                                     // digits of an integer that 64 bits do not hold
};

/// target - golden. Integers stay integers.
Difference Subtract(const Value& target, const Value& golden);

struct TensorDiff;

/// The numbers of the verdicts, and what a verdict says of them.
struct NodeRules {
  explicit NodeRules(const Thresholds& thresholds);
  Thresholds t;
  std::string relative_error, relative_growth, thousandth, cosine;
};
const NodeRules& DefaultNodeRules();

/// One parameter of the target against its partner, null when the golden side has fewer.
struct Row {
  const Param* npu = nullptr;
  const Param* bench = nullptr;
  Difference max, min, mean, norm;
  bool same_requires_grad = false;
  Level level = Level::kPass;
  std::vector<const char*> messages;
  const TensorDiff* tensor = nullptr;  // tensor mode: what its values say
};

/// Rows in the order inputs, weights, outputs, gradients; partners are found by position within each of them. Structure
/// mode has none.
void CompareParams(GraphMode mode, const ParamList& npu, const ParamList& bench, std::vector<Row>* rows);

/// The verdict of a node and of each of its rows. `node` decides about calls whose results are undefined. Of `merged`
/// ranks shapes may differ and calls carry their rank in their names.
Level JudgeNode(GraphMode mode, std::string_view node, std::vector<Row>* rows, bool merged = false,
                const NodeRules& rules = DefaultNodeRules());

/// Calls that no rule applies to, and calls whose inputs are memory that nobody has written yet.
bool IsIgnoredNode(std::string_view node);
bool HasPlaceholderInputs(std::string_view node);

}  // namespace msprobe
