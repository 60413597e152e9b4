// The comparison of two models as structures: a table of calls, the list of differences, a layer mapping to confirm.
#pragma once

#include <string>
#include <vector>

#include "compare/pair/compare.h"
#include "match/suggest_mapping.h"

namespace msprobe {

class JsonWriter;

/// What the summary says of it.
struct StructureSummary {
  StructureDiff diff;     // without the calls
  std::string list_path;  // the differences as JSON
};

struct StructureResult {
  CompareCounts counts;
  uint64_t golden_only_calls = 0;
  StructureSummary summary;
  std::vector<std::string> paths;  // of the table
};

/// Where `spec.path` says, and beside it the list. `rules` are the user's layer mapping. With `cross` the two runs are
/// of two frameworks.
StatusOr<StructureResult> CompareStructures(const DumpPair& pair, const Structure& target, const Structure& golden,
                                            const std::vector<LayerRule>& rules, const std::string& path,
                                            const Progress& progress);

/// Rules of layer mappings that renamed modules of one pair of dumps after another add up to.
class MappingSuggestion {
 public:
  void Add(const SuggestedMapping& one);
  const SuggestedMapping& sum() const { return sum_; }
  /// Replaces what is at `path`.
  Status Write(const std::string& path, std::string_view target, std::string_view golden) const;

 private:
  SuggestedMapping sum_;
};

/// "  modules and functions: 2 renamed, ..." with the first few names of each kind.
Message StructureText(const StructureSummary& summary);
void WriteStructure(JsonWriter* json, const StructureSummary& summary);

}  // namespace msprobe
