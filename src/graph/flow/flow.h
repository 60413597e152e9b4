// The flow of values through a graph: which output of which node an input of another one is. Dumps do not say it, but
// equal checksums or equal statistics do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compare/values/item_view.h"

namespace msprobe {

/// A tensor of a node.
struct FlowItem {
  uint64_t key = 0;       // equal for tensors of equal values
  uint16_t shape = 0;     // hash of the shape
  uint16_t position = 0;  // among the entries of input_data or output_data
  bool output = false;
  bool checksum = false;  // the key is that of a checksum
  bool weak = false;      // a constant, NaN, ...: many tensors look like that
};

/// Appends the tensors among the inputs and outputs of a node, which has `count` items; weights are none.
void ReadFlowItems(const std::vector<ItemView>& items, size_t count, std::vector<FlowItem>* out);

/// How sure it is that an edge exists, from 0 to 100.
enum class FlowTrust : uint8_t { kConstant = 0, kOtherShape = 1, kRepeated = 2, kStatistics = 3, kChecksum = 4 };
int TrustPercent(FlowTrust trust);

struct FlowEdge {
  uint32_t node = 0, from = 0;     // the one who takes, the one who gives; places in the order of collection
  uint16_t input = 0, output = 0;  // positions in input_data of `node` and output_data of `from`
  FlowTrust trust = FlowTrust::kConstant;
  bool operator==(const FlowEdge&) const = default;
};

/// Finds the edges of a graph whose nodes come in the order of collection.
class FlowFinder {
 public:
  explicit FlowFinder(size_t nodes);
  /// `container`: a module with calls inside that were recorded too; those say what it takes and mostly what it gives.
  void Add(uint32_t node, const FlowItem* items, size_t count, bool container, std::vector<FlowEdge>* edges);
  /// These are added next.
  void Expect(const std::vector<FlowItem>& items) const;

 private:
  struct Giver {
    uint64_t key = 0;  // 0: a free place
    uint32_t node = 0;
    uint16_t output = 0, shape = 0;
    bool repeated = false;
  };
  Giver* Place(uint64_t key);
  void Grow();

  std::vector<Giver> givers_;
  size_t used_ = 0;
};

/// Edges in order of `node`, packed: for each edge five numbers in base 128, low part first, the high bit set on all
/// but the last byte: node - node of the edge before (`first` at the beginning), input, node - from, output, trust.
std::string PackEdges(uint32_t first, const std::vector<FlowEdge>& edges);
/// False when the bytes are not edges.
bool UnpackEdges(uint32_t first, std::string_view bytes, std::vector<FlowEdge>* edges);

void AppendVarint(std::string& out, uint64_t v);
bool TakeVarint(std::string_view* bytes, uint64_t* v);

}  // namespace msprobe
