// The calls of modules in the dumps of one side, by what the modules are, and rows of their tensors as numbers.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compare/values/tensor_folder.h"
#include "dump/flatten.h"
#include "dump/reader.h"
#include "rollout/evidence.h"
#include "rollout/op/module_role.h"
#include "tensor/files/tensor_file.h"

namespace msprobe {

/// A tensor among the items of an op.
struct OpTensor {
  ItemState state = ItemState::kInput;
  std::string name;  // ".output.0", ".parameters.weight"
  DType dtype = DType::kUnknown;
  std::vector<int64_t> shape;
  std::string data_name;  // "" where its values were not saved
  int64_t elements() const;
};

/// Where an op was recorded.
struct SideOp {
  uint32_t dump = 0, op = 0;
};

/// Rows of numbers.
struct RowMatrix {
  size_t rows = 0, width = 0;
  std::vector<float> values;
  DType dtype = DType::kUnknown;
  float* row(size_t i) { return values.data() + i * width; }
  const float* row(size_t i) const { return values.data() + i * width; }
  bool empty() const { return rows == 0 || width == 0; }
};

/// A token of a forward: which, of how many. A batch of padded sequences counts the padding, too.
struct TokenRow {
  uint32_t dump = 0;
  uint32_t call = 0;                // of the model in the dump
  int64_t row = 0, rows = 0;        // among the tokens of the forward
  int64_t batch = 1;                // sequences side by side: rows = batch * length
  int64_t last = -1, requests = 0;  // its place among the last tokens of all requests; -1: it is none of them
};

class SideOps {
 public:
  /// Those of one rank. A dump that cannot be read ends it.
  static StatusOr<SideOps> Open(const std::vector<SideDump>& dumps, int rank);

  size_t dumps() const { return files_.size(); }
  const DumpFile& file(uint32_t dump) const { return files_[dump]; }
  size_t modules() const { return calls_.size(); }
  size_t ops() const { return ops_; }
  /// Calls of the module with this role, those of one dump behind each other. Null where it has none.
  const std::vector<SideOp>* Calls(const ModuleRole& role) const;
  /// The nth call in a dump.
  std::optional<SideOp> Call(const ModuleRole& role, uint32_t dump, uint32_t call) const;
  const std::string& PathOf(const ModuleRole& role) const;
  int64_t layers() const { return layers_; }
  /// Calls of functions in a dump in their order, as "scaled_dot_product_attention".
  std::vector<SideOp> Functions(uint32_t dump, std::string_view function) const;
  std::string_view NameOf(SideOp place) const { return files_[place.dump].ops().NameAt(place.op); }

  /// Tensors of an op, in the order of its items; empty where it cannot be read.
  const std::vector<OpTensor>& Tensors(SideOp place) const;
  /// The nth tensor of a kind, as output 0; null where there is none.
  const OpTensor* Tensor(SideOp place, ItemState state, size_t nth) const;
  /// With this name at its end, as "position_ids".
  const OpTensor* Named(SideOp place, std::string_view name) const;

  /// All elements of a tensor; empty where they were not saved. At most `most`.
  std::vector<double> Values(SideOp place, const OpTensor& tensor, int64_t most = int64_t{1} << 24) const;
  /// Appends the rows of tokens that are all of the op's forward. False where the tensor has no such rows. `heads`:
  /// [batch, heads, length, size].
  bool AppendRows(SideOp place, const OpTensor& tensor, std::span<const TokenRow> tokens, bool heads,
                  RowMatrix* out) const;

 private:
  struct RoleHash {
    size_t operator()(const std::pair<int64_t, int>& key) const {
      return static_cast<size_t>(key.first * 64 + key.second);
    }
  };
  struct ModuleCalls {
    std::string path;
    std::vector<SideOp> calls;
    std::vector<uint32_t> first;  // of each dump
  };
  /// Those of one dump: [begin, end) of its calls.
  std::pair<size_t, size_t> CallsIn(const ModuleRole& role, uint32_t dump) const;
  std::optional<TensorFile> Read(SideOp place, const OpTensor& tensor) const;

  std::vector<DumpFile> files_;
  std::vector<TensorFolder> folders_;
  std::unordered_map<std::pair<int64_t, int>, ModuleCalls, RoleHash> calls_;
  size_t ops_ = 0;
  int64_t layers_ = 0;
  mutable JsonDoc doc_;
  mutable std::unordered_map<uint64_t, std::vector<OpTensor>> tensors_;
};

}  // namespace msprobe
