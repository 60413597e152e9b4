// Open files and loaded graphs, the least recently used ones dropped first.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "view/file/directory.h"
#include "view/file/graph_sides.h"
#include "view/file/vis_file.h"
#include "view/query/manual_pair_metrics.h"

namespace msprobe::view {

class GraphCache {
 public:
  /// `meter` reads the values behind matches by hand, and outlives the cache.
  GraphCache(size_t max_bytes, ManualPairMetrics* meter) : max_bytes_(max_bytes), meter_(meter) {}
  /// The open file; opened again when its stamp differs from what is kept.
  StatusOr<std::shared_ptr<const VisFile>> File(const std::string& real, const FileStamp& stamp,
                                                std::string_view shown);
  /// The graph of a rank, with `edits` (may be null) in it; loaded once even if several threads ask at the same time.
  StatusOr<std::shared_ptr<const GraphSides>> Graph(const std::shared_ptr<const VisFile>& file, int64_t step,
                                                    int64_t rank,
                                                    const std::shared_ptr<const MatchEdits>& edits = nullptr);

 private:
  struct OpenFile {
    std::string real;
    FileStamp stamp;
    StatusOr<std::shared_ptr<const VisFile>> file;  // a refusal is kept too: listing a directory asks again and again
  };
  struct Slot {
    std::shared_ptr<const VisFile> file;
    int64_t step, rank;
    std::shared_ptr<const MatchEdits> edits;
    std::mutex loading;
    std::shared_ptr<const GraphSides> graph;
  };
  std::shared_ptr<Slot> FindSlot(const std::shared_ptr<const VisFile>& file, int64_t step, int64_t rank,
                                 const std::shared_ptr<const MatchEdits>& edits);
  StatusOr<GraphSides> Make(const Slot& slot);
  void Trim();

  const size_t max_bytes_;
  ManualPairMetrics* const meter_;
  std::mutex mutex_;
  std::list<OpenFile> files_;                // most recently used first
  std::list<std::shared_ptr<Slot>> graphs_;  // likewise
};

}  // namespace msprobe::view
