// How dumps of a framework name what every framework has. Whoever records with one gives them to the recorder.
#pragma once

#include <string>

namespace msprobe {

struct FrameworkNames {
  std::string framework;            // "pytorch"
  std::string tensor_type;          // of a tensor of no special class: "torch.Tensor"
  std::string dtype_prefix;         // in front of the name of an element type: "torch."
  bool tells_requires_grad = true;  // of each tensor
};

}  // namespace msprobe
