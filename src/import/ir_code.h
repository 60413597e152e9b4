// The lines of source that kernels come from, of a graph that MindSpore saved as text
// ("ms_output_trace_code_graph_0.ir").
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "import/kernel_dump.h"

namespace msprobe {

/// A node of the graph that has a name with its scope.
struct IrNode {
  std::string_view scope;               // "Default/fc-Dense/MatMul-op0"
  std::vector<std::string_view> lines;  // "In file PATH:LINE, COLUMNS/CODE/", the outermost call first
};

class IrFile {
 public:
  /// kBadInput when it names no node with its scope.
  static StatusOr<IrFile> Open(const std::string& path);
  /// `text` outlives the object; `path` is for error texts.
  static StatusOr<IrFile> Parse(std::string_view text, const std::string& path);

  /// By the name that a dump's files have: "Default_fc-Dense_MatMul-op0". Null when the graph has none.
  const IrNode* Find(std::string_view kernel) const;
  size_t size() const { return nodes_.size(); }

 private:
  std::optional<MappedFile> map_;
  std::unordered_map<std::string, IrNode> nodes_;
};

/// rank_{N}/graphs/ms_output_trace_code_graph_{graph}.ir of rank_{N}/{net}/{graph}/{step}, by "{net}/{graph}". A file
/// that cannot be read is a warning.
std::map<std::string, IrFile> ReadGraphCode(const std::vector<const KernelDirectory*>& directories,
                                            std::vector<Message>* warnings);

/// The lines as one text, each without the "/" at its end.
std::string CodeStack(const IrNode& node);
/// "model.py:81 x = self.pool(x)": the innermost line that is not the framework's, or the innermost at all; "" without.
std::string SourceLine(const IrNode& node);

}  // namespace msprobe
