// One of two runs of different frameworks: its model, and which functions count for which module.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "dump/reader.h"
#include "match/structure.h"

namespace msprobe {

/// Of functions and of layers, by their common names.
bool IsProduct(std::string_view common);

/// The model, and for each module that has a partner the forward calls of functions in it, and in modules below it that
/// have none.
struct CrossSide {
  const DumpFile* dump = nullptr;
  Structure structure;
  std::unordered_map<uint32_t, std::vector<uint32_t>> functions;  // calls by module
  std::unordered_map<uint32_t, std::string> as_functions;         // calls of modules that count as functions
  BigArray<int64_t> sizes;              // elements of what a call of a function that computes gives; 0: not known
  uint32_t last_backward = UINT32_MAX;  // op of the last gradient; UINT32_MAX: no backward pass was recorded

  const StructureCall& Call(uint32_t id) const { return structure.calls()[id]; }
  std::string_view Function(uint32_t id) const;
  /// Whether a call runs when all gradients are there: an update of weights, not the loss of the model.
  bool IsUpdate(uint32_t call) const { return Call(call).op != UINT32_MAX && Call(call).op > last_backward; }
  /// The op of the gradient of a call; UINT32_MAX: none.
  uint32_t Backward(uint32_t call) const;
  /// Whether a layer that multiplies by its weight has its activation in it, as MindSpore's may.
  bool HasActivation(uint32_t module, const std::vector<uint32_t>& partner) const;

  /// `partner`: of the modules. `joined`: layers that stand against one layer of the other side together; what is in
  /// them is left out.
  void Collect(const std::vector<uint32_t>& partner, const std::unordered_set<uint32_t>& joined);
  Status ReadSizes();

 private:
  bool IsPlainProduct(uint32_t module) const;
  bool CountsAsFunction(uint32_t id, const std::vector<uint32_t>& partner);
};

/// A tensor multiplied or divided by a number: `factor` is what it is multiplied by.
struct Scale {
  size_t at = 0, ahead = 0;  // its place among the calls, and how many anchors are ahead of it
  double factor = 0;
  std::string tensor, number;  // items
  bool divides = false;
};
std::optional<Scale> ScaleOf(const CrossSide& side, uint32_t call);

}  // namespace msprobe
