// What a person wants to know of one run by itself: how large the values are through the layers, and which of them are
// odd. From the figures of the ops, so nothing of the dump is read.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "view/file/tree.h"
#include "view/file/vis_file.h"

namespace msprobe::view {

/// An output of an op of the model; those of the optimizer do not count.
struct ActivationItem {
  std::string node, item, shape, dtype;
  std::string value;   ///< of a kind: what tells it, as the file has it
  uint64_t bytes = 0;  ///< 0: not known
};

enum class ActivationKind : uint8_t {
  kNotFinite,  ///< NaN or infinite
  kHuge,       ///< beyond what float16 holds
  kDead,       ///< all zero
  kConstant,   ///< one value all over
  kMask,       ///< minus infinity or the lowest number beside ordinary ones: what is left out of a sum is set to it
};
inline constexpr size_t kActivationKinds = 5;

struct ActivationGroup {
  uint64_t count = 0;
  std::vector<ActivationItem> first;  ///< at most kMostActivations
};

/// The outputs in one direction of a layer.
struct ActivationCell {
  uint64_t items = 0;
  std::optional<double> norm, max;  ///< the largest; of absolute values
  bool not_finite = false;
  uint32_t node = kNoNode;  ///< where the largest is, or the first that is not finite
};

struct ActivationLayer {
  std::string label;
  ActivationCell forward, backward;
};

struct Activations {
  uint64_t ops = 0, read = 0;  ///< `read` is less where a graph has more than kMostActivationOps
  uint64_t items = 0;          ///< floating-point outputs
  std::array<ActivationGroup, kActivationKinds> groups;
  std::vector<ActivationItem> largest;  ///< tensors by their bytes
  std::vector<ActivationLayer> layers;
};

inline constexpr size_t kMostActivations = 5;
inline constexpr uint64_t kMostActivationOps = 100'000;  ///< a few seconds

StatusOr<Activations> FindActivations(const VisFile& file, const Tree& tree);
std::string ToJson(const Activations& found, const Tree& tree);

}  // namespace msprobe::view
