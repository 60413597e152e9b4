// Kernel dumps: what MindSpore's own dump (level L2, graph mode) writes of each kernel's tensors, as files of numpy or
// Ascend or as lines of statistic.csv. `msprobe compare` with --rank and --step compares two of them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace msprobe {

inline constexpr size_t kKernelStats = 4;

/// One tensor of one run of a kernel.
struct KernelTensor {
  std::string key;        // "{op name}.{task}.{input|output}.{index}": kernels of two dumps pair by it
  std::string type;       // "MatMul"
  uint64_t time = 0;      // microseconds
  uint32_t run = 0;       // of one name in one graph: the how manieth in order of time; by PlaceKernels(), as the next
  uint32_t place = 0;     // of the run of the kernel among all of the step
  std::string graph;      // "{net}/{graph id}"
  std::string file;       // its file, or the statistic.csv that lists it
  int member = -1;        // which tensor of the file it is, in files of Ascend, which hold all of one run
  bool line = false;      // of statistic.csv
  bool constant = false;  // of the graph, in any step
  std::string dtype, shape;                     // of a line
  std::array<std::string, kKernelStats> stats;  // of a line: Max, Min, Mean, Norm; "" where it has none
  std::string checksum;                         // of a line: MD5 or SHA-1; "" where it has none
};

/// A directory of one graph's kernels in one step of one rank.
struct KernelDirectory {
  int rank = 0, step = 0;
  std::string path, graph;
  bool constants = false;  // {net}/{graph}/constants, which belongs to all steps; step is 0
};

/// All such directories below `root`: {net}/{graph}/{step} in rank_{N}, {device}/{model}/{id}/{step} of O2, and
/// rank_{N}/{time}/step_{N} of releases 8.x. Links are not followed; kBadInput when the tree is deeper or larger than
/// any dump.
StatusOr<std::vector<KernelDirectory>> FindKernels(const std::string& root);

/// True when `path` holds rank_{N} directories: a kernel dump, as --rank may be left out then. Looks no deeper.
bool LooksLikeKernels(const std::string& path);

enum class KernelKind : uint8_t { kNone, kFiles, kStatistics };

struct KernelList {
  KernelKind kind = KernelKind::kNone;
  std::vector<KernelTensor> tensors;
  uint64_t passed_over = 0;  // files and lines that are not a kernel's
};

/// Adds what a directory holds: files of numpy and of Ascend, or else the lines of its statistic.csv. Constants are
/// files whatever else the list has.
Status ReadKernels(const KernelDirectory& directory, KernelList* out);

/// The text of one statistic.csv; `path` names it.
Status ReadKernelLines(std::string_view text, const std::string& path, const std::string& graph, KernelList* out);

/// The lines "{digits}.npy,{name}" of mapping.csv, which stands beside files whose names would be too long; `path`
/// names it.
Status ReadLongNames(std::string_view text, const std::string& path, std::map<std::string, std::string>* out);

/// "{op name}" of its key.
std::string_view KernelOf(const KernelTensor& tensor);
bool IsOutput(const KernelTensor& tensor);
uint32_t SlotOf(const KernelTensor& tensor);

/// Fills key, type and time from "{type}.{op}.{task}.{stream}.{time}.{input|output}.{index}.{format}[.{dtype}].npy";
/// false for other names.
bool ParseKernelName(std::string_view name, KernelTensor* out);

}  // namespace msprobe
