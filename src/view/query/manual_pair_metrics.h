// Pairs of nodes of tensor dumps that a person matched: their values are read from the files of the dumps and measured.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "compare/values/tensor_pairs.h"
#include "view/file/directory.h"

namespace msprobe::view {

/// Where the tensors of a pair lie, as the graph says.
struct TensorPlaces {
  std::string target, golden;
};

/// Thread-safe. What was measured is kept as long as the files stay as they are: a graph is made afresh with each
/// match.
class ManualPairMetrics {
 public:
  /// Only what lies below `root` is read; "": nothing.
  explicit ManualPairMetrics(std::string root) : root_(std::move(root)) {}
  bool enabled() const { return !root_.empty(); }
  const std::string& root() const { return root_; }
  /// What measures the pairs of rows whose tensors lie there; it needs this object.
  std::unique_ptr<TensorSource> Source(const TensorPlaces& places);
  /// Fills `out` as TensorPairs::Diff does, or with what is known.
  void Diff(const TensorPairs& pairs, const ItemView& target, const ItemView* golden, TensorDiff* out);

 private:
  std::string DumpAt(const std::string& place) const;

  const std::string root_;
  std::mutex mutex_;
  std::list<std::pair<std::string, TensorDiff>> known_;  // by files and their stamps, the last used first
  std::unordered_map<std::string, std::list<std::pair<std::string, TensorDiff>>::iterator> index_;
};

}  // namespace msprobe::view
