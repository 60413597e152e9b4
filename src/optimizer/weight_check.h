// What a side did to a weight against its rule in float64, in units in the last place.
#pragma once

#include <array>
#include <cstdint>

#include "optimizer/weight_update.h"

namespace msprobe {

/// Elements that rounding does not explain.
struct OffCount {
  size_t off = 0;
  double worst = 0;  // times what rounding may do
  void Add(const OffCount& o) {
    off += o.off;
    worst = worst > o.worst ? worst : o.worst;
  }
};

struct WeightCheck {
  size_t elements = 0;
  OffCount weight;
  std::array<OffCount, kStateRoles> states;
  double worst_ulp = 0;   // |recorded - float64| of the weight, in ulp of its type
  size_t lost = 0;        // elements that did not move though the update is not zero: less than half an ulp
  size_t stochastic = 0;  // elements that moved by a whole ulp where the update is less than half of one
  bool computed = true;   // false: the record lacks what the rule needs

  bool fine() const;
  size_t off() const;
  void Add(const WeightCheck& o);
};

/// A few operations round in the coarsest type that takes part; the weight itself rounds once or twice more.
WeightCheck CheckUpdate(const UpdateRule& rule, const WeightValues& values);

}  // namespace msprobe
