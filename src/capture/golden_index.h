// The checksums of an earlier dump (golden), by op: what task tensor with bench_path compares with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "capture/op_checksums.h"

namespace msprobe {

/// Read once for a step, op by op; keeps 24 bytes for an op and 12 for a tensor, and nothing of the file.
class GoldenIndex {
 public:
  /// `path` is a dump.json. kBadInput when it is none, or when its tensors carry no CRC-32.
  static StatusOr<GoldenIndex> Read(const std::string& path);

  size_t size() const { return ops_.size(); }
  bool Contains(std::string_view op_name) const { return Find(op_name) != nullptr; }
  /// The op is there with the inputs of `here`, and an output is another one.
  bool OnlyOutputsDiffer(std::string_view op_name, const OpChecksums& here) const;

 private:
  struct Op {
    uint64_t name;  // hash
    uint32_t first, inputs, outputs;
  };
  const Op* Find(std::string_view op_name) const;
  std::vector<Op> ops_;  // by hash
  std::vector<TensorSum> sums_;
};

/// The dump.json of a step and rank in a dump, step, or rank directory; `rank` below 0 is a run that is not
/// distributed. A directory that holds a single rank's dump stands for every rank. kBadInput when there is none.
StatusOr<std::string> FindGoldenDump(const std::string& path, int step, int rank);

}  // namespace msprobe
