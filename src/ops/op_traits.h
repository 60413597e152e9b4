// What an op is, by the name of its API or of its module's class: the table is op_traits.def.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace msprobe {

/// What an op computes, as far as its rounding is concerned.
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

namespace op_trait {
enum Bits : uint16_t {
  kNoTraits = 0,
  kUndefined = 1 << 0,      // its result is memory that nobody wrote
  kIgnored = 1 << 1,        // mindstudio-probe compares nothing of it, and so do we
  kInputsIgnored = 1 << 2,  // of a communication: mindstudio-probe compares its outputs only
  kInPlace = 1 << 3,        // changes its first argument though its name does not end in an underscore
  kPutsConstant = 1 << 4,   // puts a value where it is told to, as masks are made
  kOverwrites = 1 << 5,     // one of these that, in place, replaces any values; not a way to mask values that are there
  kTakesMask = 1 << 6,      // -inf is an input like any other
  kMoves = 1 << 7,          // other memory, dtype or device, or a question: which run has it says nothing by itself
  kVaries = 1 << 8,         // kernels that give other bits from run to run unless they are told not to
  kSums = 1 << 9,           // of a communication: each rank gives a summand
  kExcused = 1 << 10,       // mindstudio-probe's graphs do not mark NaN in what it returns, or in the argument it fills
  kExcusedByName = 1 << 11,  // of these a communication whose other keyword arguments are looked at
  kDraws = 1 << 12,          // random numbers: another generator, seed or release gives others
  kCasts = 1 << 13,          // to another dtype, which its name or an argument tells
  kCompares = 1 << 14,       // element by element, which gives true or false
};
}  // namespace op_trait

struct OpTraits {
  Arithmetic arithmetic = Arithmetic::kUnknown;
  uint16_t bits = op_trait::kNoTraits;
  constexpr bool Has(uint16_t trait) const { return (bits & trait) != 0; }
};

/// Of "linear", "add_", "__add__" or "LayerNorm"; the plain kUnknown for a name that is not in the table. A function of
/// torch._foreach_ has the traits of the one it runs, a name of MindSpore's those of its twin.
OpTraits TraitsOf(std::string_view api_or_class);

/// Of an API ("Functional.linear.3.forward") or a module ("Module.fc.Linear.forward.0", by its class).
Arithmetic ArithmeticOf(std::string_view op_name);

/// True for an API that no rule of mindstudio-probe's applies to.
bool IsIgnored(std::string_view api);
/// The same by the name of an op ("Torch.empty_like.0.forward"); no module is ignored.
bool IsIgnoredApi(std::string_view op_name);

/// True for an op whose values say nothing: one that is ignored, and every other that returns memory nobody wrote.
bool HasArbitraryValues(std::string_view op_name);

/// True for ops that give other memory, dtype or device to the same values: which run has them says nothing by itself.
bool OnlyMovesOrCasts(std::string_view op_name);

/// True for ops whose result depends on random numbers.
bool DrawsRandomNumbers(std::string_view op_name);

/// True for an API that writes to its first argument: "add_", "Tensor.__iadd__".
bool ChangesArguments(std::string_view api);

/// Positions of results, or of arguments after the call, that hold no values.
std::span<const int> ResultsWithoutValue(std::string_view api);

/// A function of MindSpore's and one of PyTorch's that do the same.
struct OpTwin {
  std::string_view mindspore, torch;
};
std::span<const OpTwin> OpTwins();

}  // namespace msprobe
