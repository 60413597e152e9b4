// What `msprobe parity` recorded of one rank: python/msprobe/_attach/parity/record.py writes it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "tensor/kernels/dtype.h"

namespace msprobe {

struct ParityBox {
  std::vector<int64_t> begin, size;
};

struct ParityEntry {
  std::string name;
  DType dtype = DType::kUnknown;
  std::vector<int64_t> shape;
  const char* data = nullptr;
  // Where the place in the whole is known: the boxes of it that lie here, one behind the other in the first dimension.
  std::vector<int64_t> whole;
  std::vector<ParityBox> boxes;
  std::vector<std::string> partial, mean;            // axes over which the whole is the sum of these, or their mean
  std::vector<std::string> replica;                  // axes over which a wrapper keeps it alike
  std::string unknown;                               // the axis that divides it, nothing says how
  std::optional<std::pair<int64_t, int64_t>> valid;  // elements that this rank keeps, in C order
  int64_t elements() const;
  /// What a rank holds is a part of a sum or of a mean.
  bool summand() const { return !partial.empty() || !mean.empty(); }
};

/// The tensors of one phase of a step, in the order in which they came.
struct ParityPhase {
  std::vector<ParityEntry> entries;
  std::map<std::string, size_t, std::less<>> by_name;  // the first of each name
  const ParityEntry* Find(std::string_view name) const;
};

struct ParityRank {
  int rank = 0, world = 1, steps = 0;
  std::map<std::string, std::vector<int>> axes;  // the ranks of its group, in their order
  std::map<std::pair<int, std::string>, ParityPhase> phases;
  std::map<std::pair<int, std::string>, std::vector<double>> numbers;  // norm, limit
  std::map<std::pair<int, std::string>, std::vector<std::string>> texts;
  std::map<std::string, std::vector<std::string>> notes;  // why something is not compared, and what
  std::vector<std::string> lost;                          // what failed while it looked
  std::string python, torch, engine;
  std::unique_ptr<MappedFile> head, tensors;

  const ParityPhase& phase(int step, const std::string& name) const;
  std::optional<double> Number(int step, const std::string& name) const;
};

using ParityRun = std::vector<ParityRank>;

/// Reads DIRECTORY/rankN of every rank, in the order of their numbers.
StatusOr<ParityRun> ReadParityRun(const std::string& directory);

/// Elements in float64.
std::vector<double> ElementsOf(const ParityEntry& entry);

}  // namespace msprobe
