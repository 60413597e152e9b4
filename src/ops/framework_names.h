// Names that PyTorch and MindSpore have in common, for what they call differently.
#pragma once

#include <string>
#include <string_view>

namespace msprobe {

struct CommonFunction {
  std::string name;    // "matmul" for torch.bmm, F.linear, Tensor.__matmul__ and the primitive BatchMatMul
  bool moves = false;  // only moves elements or looks at shapes: the other framework may do without it
};
/// `api` is the function's name without its module, or the class of a primitive: "__mul__", "BatchMatMul".
CommonFunction CommonFunctionOf(std::string_view api);

/// By its common name: its recorded backward is not that of the whole function.
bool IsComposite(std::string_view common);

struct CommonClass {
  std::string name;    // "linear" for Linear, Dense and ColumnParallelLinear; in lower case where no rule names it
  bool layer = false;  // a layer of the framework, whose inside is its own business
};
CommonClass CommonClassOf(std::string_view class_name);

/// "weight" for "gamma"; other names as they are.
std::string_view CommonParameter(std::string_view name);

struct CommonArgument {
  std::string_view name;       // "dim" for "axis"; "" for an argument that the frameworks do not share
  std::string_view otherwise;  // its value where a call does not give it; "" where that is not known
};
CommonArgument CommonArgumentOf(std::string_view name);

/// Of an argument that says how a call is made and changes no value ("async_op").
bool SaysHow(std::string_view argument);

}  // namespace msprobe
