// What a factor may be: 8 is 2^3, and the number of ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace msprobe {

/// What is known of the run that a factor may come from.
struct FactorContext {
  int ranks = 0;                    // that are compared; 0: not known
  std::vector<int64_t> dimensions;  // of the tensors of the op
};

struct FactorName {
  std::string text;  // "8", "1/8", "2^16", "sqrt(8)", "3/4"; "" for a number without a name
  double exact = 0;  // what the text says
  std::vector<std::string> meanings;
};

/// `error`: how well the factor is known, relative. A name is given only where numbers with a name are rarer than that.
FactorName NameFactor(double factor, double error, const FactorContext& context);

}  // namespace msprobe
