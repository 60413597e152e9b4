// Reading dump.json, stack.json and construct.json: an index of where each op stands, and ops parsed one at a time when
// they are asked for. A dump of any size costs the index (about 60 bytes an op), not its text.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "dump/json.h"

namespace msprobe {

struct OpSpan {
  std::string_view name;
  uint64_t offset = 0;  // of the op's '{' in the file (debug.json: of any value)
  uint64_t length = 0;  // up to and with its '}'
};

class ParentIndex;

/// dump.json or debug.json. Thread-safe after Open().
class DumpFile {
 public:
  /// kBadInput with path, byte and cause when the file is not a dump. A file that ends in the middle is accepted: the
  /// complete ops are kept and `truncated()` says where it ended. A trailing comma is accepted.
  static StatusOr<DumpFile> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  std::string_view task() const { return task_; }            // "statistics", "tensor", "structure", ...
  std::string_view level() const { return level_; }          // "L0", "L1", "mix", "debug"
  std::string_view framework() const { return framework_; }  // "pytorch", "mindspore", "" in old dumps
  std::string_view dump_data_dir() const { return dump_data_dir_; }
  const std::vector<OpSpan>& ops() const { return ops_; }
  /// Index of an op by name. Names are unique; of duplicates the last one counts, as for Python's json.
  std::optional<size_t> FindOp(std::string_view name) const;
  /// A sentence for the user when the end of the file is missing: byte and number of ops recovered; else empty.
  const std::string& truncated() const { return truncated_; }
  /// Parses one op into `doc` (reused between calls by the same thread).
  Status ParseOp(size_t index, JsonDoc* doc) const;
  /// True when some tensor of the dump carries an "md5" field (CRC-32 or xor); looks at ops until it knows.
  StatusOr<bool> HasChecksums() const;
  const MappedFile& file() const { return file_; }
  /// construct.json beside the file, opened when it is first asked for and then shared by all who ask; null when there
  /// is none.
  StatusOr<std::shared_ptr<const ParentIndex>> Parents() const;

 private:
  struct SharedParents;
  explicit DumpFile(MappedFile file);
  MappedFile file_;
  std::shared_ptr<SharedParents> parents_;
  std::string task_, level_, framework_, dump_data_dir_, truncated_;
  friend class DumpIndexer;
  /// Slot of the op in slots_, or the free one where it belongs.
  size_t SlotOf(std::string_view name, uint32_t hash) const;
  std::vector<OpSpan> ops_;
  std::deque<std::string> unescaped_;  // names that hold escapes; OpSpan::name points here for them
  std::vector<uint64_t> slots_;        // hash table: hash of the name and position in ops_ plus 1; a power of two
};

/// stack.json in both forms: {op: [frames]} and {"0": [[ops], [frames]], ...}. Identical stacks share one id.
class StackFile {
 public:
  static StatusOr<StackFile> Open(const std::string& path);
  /// Id of the op's stack, or nothing.
  std::optional<uint32_t> StackOf(std::string_view op) const;
  const std::vector<std::string>& Frames(uint32_t id) const { return stacks_[id]; }
  size_t size() const { return stacks_.size(); }
  /// As DumpFile::truncated().
  const std::string& truncated() const { return truncated_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };
  std::vector<std::vector<std::string>> stacks_;
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> by_op_;
  std::string truncated_;
};

struct ConstructEntry {
  std::string name;
  std::string parent;  // "" for null or ""
  int micro_step = 0;
};

/// construct.json: node -> parent in execution order.
struct ConstructFile {
  static StatusOr<ConstructFile> Open(const std::string& path);
  std::vector<ConstructEntry> entries;      // duplicates removed, first position and last value as in a Python dict
  std::optional<int> megatron_micro_steps;  // value of "megatron_micro_step_number"
  std::string truncated;                    // as DumpFile::truncated()
};

/// construct.json as a table to look up parents in: views into the file, which stays mapped. A fraction of the time and
/// the memory of ConstructFile.
class ParentIndex {
 public:
  static StatusOr<ParentIndex> Open(const std::string& path);
  /// "" for a node without parent, or one that is not there.
  std::string_view ParentOf(std::string_view name) const {
    const auto it = parents_.find(name);
    return it == parents_.end() ? std::string_view() : it->second;
  }
  bool empty() const { return parents_.empty(); }
  bool Has(std::string_view name) const { return parents_.count(name) > 0; }
  /// All nodes, in the order of the file.
  const std::vector<std::string_view>& names() const { return names_; }
  /// As DumpFile::truncated().
  const std::string& truncated() const { return truncated_; }

 private:
  std::unique_ptr<MappedFile> file_;
  std::deque<std::string> unescaped_;  // names that are not in the file as they are meant
  std::unordered_map<std::string_view, std::string_view> parents_;
  std::vector<std::string_view> names_;
  std::string truncated_;
};

/// One step's rank directories, as dumps lay them out.
struct RankDir {
  std::string path;
  std::string name;         // "rank3", "rank", "proc1234"
  std::optional<int> rank;  // 3; 0 for "rank"; nothing for "proc1234"
};
struct StepDir {
  std::string path;
  std::string name;  // "step0"
  int step = 0;
  std::vector<RankDir> ranks;
};
/// What a path is: a dump file, a rank directory (holds dump.json), a step directory (holds rank*/proc*), or a dump
/// directory (holds step*). Ranks and steps in numeric order. kBadInput with what was found and what was expected
/// otherwise.
enum class PathKind { kFile, kRank, kStep, kDump };
struct DumpPath {
  PathKind kind = PathKind::kFile;
  std::string path;
  std::vector<StepDir> steps;  // one step for kStep; one step with one rank for kRank; empty for kFile
};
StatusOr<DumpPath> ResolveDumpPath(const std::string& path);

}  // namespace msprobe
