// What merge_result reads: its YAML, the result files of a directory, and of each file the rows that were asked for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/message.h"
#include "base/slot_table.h"
#include "dump/name_list.h"
#include "sheet/sheet_reader.h"

namespace msprobe {

struct MergeConfig {
  std::vector<std::string> apis;     // "Distributed", "Module.a.Linear", "Distributed.all_reduce.0.forward"
  std::vector<std::string> metrics;  // empty: all
  /// An API with all that follows it: "Distributed.all_reduce" has "Distributed.all_reduce.0.forward.input.0", and not
  /// "Distributed.all_reduce_coalesced.0.forward.input.0". The index of the first that fits, or apis.size().
  size_t ApiOf(std::string_view row) const;
};
StatusOr<MergeConfig> ReadMergeConfig(const std::string& path);

/// The results of one rank: one file, or its parts in order.
struct RankResults {
  int rank = 0;
  std::string time;  // as in the name
  std::vector<std::string> paths;
};
/// By rank. Of several results of a rank the newest counts; `warnings` names the others.
StatusOr<std::vector<RankResults>> FindRankFiles(const std::string& directory, std::vector<Message>* warnings);

/// One metric of one row.
struct MergedCell {
  SheetCell::Kind kind = SheetCell::Kind::kEmpty;
  std::string_view text;
};

/// The rows of one rank, packed: a cell takes its text and five bytes. Beyond what arrays may hold in memory they are
/// in files.
class RankRows {
 public:
  /// Reads `files`; kBadInput for results without metrics (md5) and files that are not results.
  static StatusOr<RankRows> Read(const RankResults& files, const MergeConfig& config);

  const std::vector<std::string>& metrics() const { return metrics_; }  // of the file, in its order
  const NameList& names() const { return names_; }                      // of the rows, in their order
  bool ApiSeen(size_t api) const { return seen_[api]; }
  /// The row of this name, -1 when there is none; of rows of one name the first counts.
  int64_t Find(std::string_view name) const;
  /// A whole row, metric by metric: numbers, texts, and for what is not a value the largest elements of both sides.
  std::vector<MergedCell> Row(int64_t row) const;

 private:
  class Reader;
  std::vector<std::string> metrics_;
  NameList names_;
  SlotTable by_name_;
  BigArray<char> cells_;
  BigArray<uint64_t> ends_;
  std::vector<bool> seen_;
  std::vector<bool> numeric_;  // by metric: texts that are numbers are shown as such
};

}  // namespace msprobe
