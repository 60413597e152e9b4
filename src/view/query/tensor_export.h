// Previews of tensors for a page without a server; web/src/api/exported.ts reads them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "json/writer.h"
#include "view/file/vis_file.h"
#include "view/query/answers.h"

namespace msprobe::view {

struct QueryContext;

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
  TensorExport(const GraphAddress& key, const QueryContext& held, uint64_t budget);
  Status Add(bool target, uint32_t node);
  /// At the end: there is nothing to be added any more.
  void Write(JsonWriter* json);
  const ExportedTensors& count() const { return count_; }
  uint64_t used() const { return used_; }

 private:
  struct File {
    std::string name, path, dtype;
  };
  Status AddItem(bool target, uint32_t node, const ViewRow& row, const ViewRow* partner, JsonWriter* out);
  StatusOr<File> FileOf(bool target, uint32_t node, const ViewRow& row) const;
  StatusOr<std::string> Slices(const File& mine, const File& theirs) const;

  const GraphAddress& key_;
  const QueryContext& held_;
  const uint64_t budget_;
  uint64_t used_ = 0;
  ExportedTensors count_;
  JsonWriter target_{kJsonPage}, golden_{kJsonPage};  // open objects
};

}  // namespace msprobe::view
