// Weights of two checkpoints, paired.
#pragma once

#include <string>
#include <vector>

#include "base/message.h"
#include "weights/weight_tensor.h"

namespace msprobe {

/// How sure a pair is, surest first.
enum class MatchedBy : uint8_t {
  kFile,        ///< a person's map says so
  kName,        ///< the same name
  kRole,        ///< names that say the same: layer and what it is there
  kTied,        ///< one side stores a tied weight once, the other twice
  kStatistics,  ///< names say nothing; shape and values agree
  kStructure,   ///< the only one of its shape, or its place among those of its shape
};
std::string_view MatchedByText(MatchedBy by);

/// Two tensors of the same shape, or of two where `same_shape` is false.
struct WeightPair {
  WeightTensor a, b;
  MatchedBy by = MatchedBy::kName;
  bool same_shape = true;
  std::string note;                   // what was done to compare them: "transposed", "padded: ..."
  size_t source_a = 0, source_b = 0;  // of Checkpoint::tensors
};

struct NameMap {
  std::vector<WeightPair> pairs;             // in the order of A
  std::vector<WeightTensor> only_a, only_b;  // with no partner
  std::vector<Message> notes;
};

}  // namespace msprobe
