// In which order MindSpore launched the kernels of a graph: rank_{N}/execution_order of a kernel dump.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "import/kernel_dump.h"

namespace msprobe {

/// "Default_fc-Dense_MatMul-op0" of "Default/fc-Dense/MatMul-op0": a name with its scope as names of files have it.
std::string KernelFileName(std::string_view scope);

class ExecutionOrder {
 public:
  /// ms_execution_order_graph_{id}.csv: a title, then a name with its scope a line. kBadInput for other files.
  static StatusOr<ExecutionOrder> Parse(std::string_view text, const std::string& path);
  static StatusOr<ExecutionOrder> Open(const std::string& path);

  const std::vector<std::string>& scopes() const { return scopes_; }
  /// Where the kernel stands, by the name that files have; the first of two kernels with one name.
  std::optional<size_t> PlaceOf(std::string_view kernel) const;
  /// Iterations in which the graph ran, of ms_global_execution_order_graph_{id}.csv; empty without one.
  std::vector<uint64_t> iterations;

 private:
  std::vector<std::string> scopes_;
  std::unordered_map<std::string, size_t> places_;
};

/// ms_global_execution_order_graph_{id}.csv: a number a line.
StatusOr<std::vector<uint64_t>> ParseIterations(std::string_view text, const std::string& path);

/// Of each graph that has one, by "{net}/{graph id}". A file that cannot be read is a warning.
using ExecutionOrders = std::map<std::string, ExecutionOrder>;
ExecutionOrders ReadExecutionOrders(const std::vector<const KernelDirectory*>& directories,
                                    std::vector<Message>* warnings);

/// Whether a name is a kernel's ("..MatMul-op3") and not that of an input or a constant of a graph.
bool IsKernelName(std::string_view name);

/// Fills run and place: kernels of a graph in its execution order, or without one in the order of time. What the order
/// does not list (parameters are dumped at the end) is behind the kernel before it in time; constants come first.
void PlaceKernels(const ExecutionOrders& orders, KernelList* list);

}  // namespace msprobe
