// Previews of tensors for a page without a server; web/src/api/exported.ts reads them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "view/vis_file.h"

namespace msprobe::view {

struct GraphKey;
struct Held;

/// What a page holds of the tensors of its graphs; a pair counts once.
struct ExportedTensors {
  uint64_t saved = 0, held = 0;
  uint64_t unread = 0;  ///< not there, no tensors, or larger than kMostExportedTensor
  std::string problem;  ///< of the first of them
};

/// Files larger than this are not read for a page.
inline constexpr uint64_t kMostExportedTensor = uint64_t{256} << 20;
/// Further slices of a tensor are kept while all of them take no more than this.
inline constexpr uint64_t kMostExportedSlices = uint64_t{64} << 10;

/// True where the tensor of an item was saved.
bool HasTensor(const NodeRecord& record);

/// Writes `{"NPU":{"NODE":{"ITEM":{"SLICE":PREVIEW,..},..},..},"Bench":{..}}` of nodes of the target, in this order,
/// each with its partner, then of nodes of the golden side by themselves, until `budget` bytes are written.
class TensorExport {
 public:
  TensorExport(const GraphKey& key, const Held& held, uint64_t budget);
  Status Add(bool npu, uint32_t node);
  std::string Json() const { return "{\"NPU\":{" + npu_ + "},\"Bench\":{" + bench_ + "}}"; }
  const ExportedTensors& count() const { return count_; }
  uint64_t used() const { return used_; }

 private:
  struct File {
    std::string name, path, dtype;
  };
  Status AddItem(bool npu, uint32_t node, const ViewRow& row, const ViewRow* partner, std::string* out);
  StatusOr<File> FileOf(bool npu, uint32_t node, const ViewRow& row) const;
  StatusOr<std::string> Slices(const File& mine, const File& theirs) const;

  const GraphKey& key_;
  const Held& held_;
  const uint64_t budget_;
  uint64_t used_ = 0;
  ExportedTensors count_;
  std::string npu_, bench_;
};

}  // namespace msprobe::view
