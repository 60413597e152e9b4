// How two merged runs divide one model over their ranks.
#pragma once

namespace msprobe {

struct LayoutDifference {
  bool divided = false;  // otherwise than the golden run
  bool stages = false;   // other pipeline stages: what they send to each other are other tensors
  double gradients = 1;  // of the target are so many times the golden run's until they are averaged
};

}  // namespace msprobe
