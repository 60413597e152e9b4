// What an op computes, as far as its rounding is concerned: told from its name and the shapes of its tensors.
#pragma once

#include <cstdint>
#include <string_view>

namespace msprobe {

enum class Arithmetic : uint8_t {
  kCopy,         // moves elements: view, cat, embedding, transpose
  kElementwise,  // one operation for each element: add, mul, relu
  kFunction,     // an elementary function for each element: exp, gelu, sin
  kProduct,      // sums of products: linear, matmul, conv
  kReduction,    // sums: sum, mean, norm, var
  kNormalise,    // reduction and rescaling: layer_norm, rms_norm, batch_norm
  kSoftmax,      // softmax, log_softmax, cross_entropy
  kAttention,    // two products and a softmax
  kUnknown,      // anything: modules with code of their own
};

/// Of an API ("Functional.linear.3.forward") or a module ("Module.fc.Linear.forward.0", by its class).
Arithmetic ArithmeticOf(std::string_view op_name);

/// "linear" of "Functional.linear.3.forward", "Linear" of "Module.fc.Linear.forward.0".
std::string_view ApiOrClassOf(std::string_view op_name);

/// True for ops that give other memory, dtype or device to the same values: which run has them says nothing by itself.
bool OnlyMovesOrCasts(std::string_view op_name);

}  // namespace msprobe
