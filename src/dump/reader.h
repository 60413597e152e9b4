// Reading dump.json, stack.json and construct.json: an index of where each op stands, and ops parsed one at a time when
// they are asked for. A dump of any size costs the index (about 25 bytes an op, in files when it grows large), not its
// text.
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

#include "base/big_array.h"
#include "base/file.h"
#include "base/message.h"
#include "dump/name_list.h"
#include "dump/wholeness.h"
#include "json/value.h"

namespace msprobe {

struct OpSpan {
  std::string_view name;
  uint64_t offset = 0;  // of the op's '{' in the file (debug.json: of any value)
  uint64_t length = 0;  // up to and with its '}'
};

/// The ops of a dump in its order, by value: 16 bytes an op, beside the table that finds them by name.
class OpList {
 public:
  class Iterator {
   public:
    using value_type = OpSpan;
    using difference_type = std::ptrdiff_t;
    Iterator(const OpList* list, size_t at) : list_(list), at_(at) {}
    OpSpan operator*() const { return (*list_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator& o) const { return at_ == o.at_; }

   private:
    const OpList* list_;
    size_t at_;
  };

  size_t size() const { return extents_.size(); }
  bool empty() const { return extents_.empty(); }
  OpSpan operator[](size_t i) const { return {names_[i], OffsetAt(i), LengthAt(i)}; }
  std::string_view NameAt(size_t i) const { return names_[i]; }
  uint64_t OffsetAt(size_t i) const { return extents_[i] & kOffsetBits; }
  uint64_t LengthAt(size_t i) const {
    const uint64_t length = extents_[i] >> kLengthShift;
    return length == kLong ? long_.at(i) : length;
  }
  OpSpan front() const { return (*this)[0]; }
  OpSpan back() const { return (*this)[size() - 1]; }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

 private:
  friend class DumpIndexer;
  friend class DumpFile;
  static constexpr unsigned kLengthShift = 40;
  static constexpr uint64_t kOffsetBits = (uint64_t{1} << kLengthShift) - 1, kLong = 0xFFFFFF;
  void Clear();
  void Add(std::string_view name, uint64_t offset, uint64_t length);
  /// After the last one: of duplicates the last one counts, at the first place.
  void Finish();

  NamesByHash names_;
  BigArray<uint64_t> extents_;                 // offset in the lower 40 bits, length above; kLong: in long_
  std::unordered_map<size_t, uint64_t> long_;  // ops of 16 MB and more
};

class ParentIndex;

/// What the tensors of a dump carry.
enum class Checksums : uint8_t { kNoTensors, kAbsent, kPresent };
/// True when one dump has tensors with checksums and the other tensors without.
inline bool OneSided(Checksums a, Checksums b) {
  return a != b && a != Checksums::kNoTensors && b != Checksums::kNoTensors;
}

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
  /// JSON of the rows of the batches: who asked for which tokens of dimension 0, in their order. "" where none is kept.
  std::string_view schedule() const { return schedule_; }
  const OpList& ops() const { return ops_; }
  /// Index of an op by name. Names are unique; of duplicates the last one counts, as for Python's json.
  std::optional<size_t> FindOp(std::string_view name) const;
  /// A sentence for the user when the end of the file is missing: byte and number of ops recovered; else empty.
  const Message& truncated() const { return truncated_; }
  /// Whether it holds all that its run did.
  const Wholeness& wholeness() const { return wholeness_; }
  /// Parses one op into `doc` (reused between calls by the same thread).
  Status ParseOp(size_t index, JsonDoc* doc) const;
  /// Whether tensors of the dump carry an "md5" field (CRC-32 or xor); looks at ops until it knows.
  StatusOr<Checksums> FindChecksums() const;
  const MappedFile& file() const { return file_; }
  /// construct.json beside the file, opened when it is first asked for and then shared by all who ask; null when there
  /// is none.
  StatusOr<std::shared_ptr<const ParentIndex>> Parents() const;

 private:
  struct SharedParents;
  explicit DumpFile(MappedFile file);
  MappedFile file_;
  std::shared_ptr<SharedParents> parents_;
  std::string task_, level_, framework_, dump_data_dir_, schedule_;
  Message truncated_;
  Wholeness wholeness_;
  friend class DumpIndexer;
  OpList ops_;
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
  const Message& truncated() const { return truncated_; }

 private:
  friend class StackReader;
  std::unique_ptr<MappedFile> file_;
  std::vector<std::vector<std::string>> stacks_;
  NamesByHash ops_;
  BigArray<uint32_t> ids_;  // of their stacks
  Message truncated_;
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
  Message truncated;                        // as DumpFile::truncated()
};

/// construct.json as a table to look up parents in: views into the file, which stays mapped. A fraction of the time and
/// the memory of ConstructFile.
class ParentIndex {
 public:
  static StatusOr<ParentIndex> Open(const std::string& path);
  /// "" for a node without parent, or one that is not there.
  std::string_view ParentOf(std::string_view name) const {
    const size_t at = names_.Find(name);
    return at == NamesByHash::kNone ? std::string_view() : parents_[parent_of_[at]];
  }
  bool empty() const { return names_.size() == 0; }
  bool Has(std::string_view name) const { return names_.Find(name) != NamesByHash::kNone; }
  /// All nodes, in the order of the file.
  size_t size() const { return names_.size(); }
  std::string_view NameAt(size_t i) const { return names_[i]; }
  /// As DumpFile::truncated().
  const Message& truncated() const { return truncated_; }

 private:
  Status Add(std::string_view name, std::string_view parent);
  std::unique_ptr<MappedFile> file_;
  NamesByHash names_;
  NameList parents_;              // one behind the other often have the same
  BigArray<uint32_t> parent_of_;  // positions in parents_
  Message truncated_;
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
