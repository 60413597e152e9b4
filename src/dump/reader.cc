#include "dump/reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <utility>

#include "base/interrupt.h"
#include "dump/flatten.h"
#include "dump/members.h"
#include "dump/scan.h"

namespace msprobe {
namespace {

using Step = MemberScanner::Step;

// Pages behind the scan are handed back in pieces of this size, so that indexing a 10 GB file does not fill memory.
constexpr size_t kReleaseBytes = size_t{64} << 20;
constexpr size_t kTensorsLookedAt =
    1000;  // by HasChecksums before it says no: checksums are on for all tensors or none

/// Eight bytes at a time; names of ops differ mostly in a digit or two.
uint32_t HashName(std::string_view s) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;
  uint64_t h = s.size() * kMultiplier;
  const auto mix = [&](uint64_t word) {
    h = (h ^ word) * kMultiplier;
    h ^= h >> 32;
  };
  uint64_t word = 0;
  for (; s.size() >= sizeof word; s.remove_prefix(sizeof word)) {
    std::memcpy(&word, s.data(), sizeof word);
    mix(word);
  }
  word = 0;
  if (!s.empty()) std::memcpy(&word, s.data(), s.size());
  mix(word);
  return static_cast<uint32_t>(h);
}

}  // namespace

struct DumpFile::SharedParents {
  std::mutex mutex;
  std::optional<StatusOr<std::shared_ptr<const ParentIndex>>> opened;
};

DumpFile::DumpFile(MappedFile file) : file_(std::move(file)), parents_(std::make_shared<SharedParents>()) {}

StatusOr<std::shared_ptr<const ParentIndex>> DumpFile::Parents() const {
  std::lock_guard lock(parents_->mutex);
  if (parents_->opened) return *parents_->opened;
  const auto open = [&]() -> StatusOr<std::shared_ptr<const ParentIndex>> {
    const std::string path = JoinPath(DirName(file_.path()), "construct.json");
    if (!IsRegularFile(path)) return std::shared_ptr<const ParentIndex>();
    MSP_ASSIGN_OR_RETURN(ParentIndex index, ParentIndex::Open(path));
    return std::shared_ptr<const ParentIndex>(std::make_shared<const ParentIndex>(std::move(index)));
  };
  parents_->opened.emplace(open());
  return *parents_->opened;
}

/// Builds the index of a DumpFile.
class DumpIndexer {
 public:
  explicit DumpIndexer(DumpFile* dump) : dump_(dump), file_(dump->file_) {}
  Status Run();

 private:
  Status ReadData(size_t open, size_t* end);
  Status ReadHeader(const Member& m);
  Status AddOp(const Member& m);
  void Rehash();
  void Truncate();

  DumpFile* dump_;
  const MappedFile& file_;
  std::string_view text_;
  size_t released_ = 0;
  bool has_data_ = false;
  JsonDoc doc_;
};

Status DumpIndexer::Run() {
  MSP_ASSIGN_OR_RETURN(const JsonText json, OpenObject(file_, "a dump.json"));
  text_ = json.text;
  MemberScanner top(text_, json.begin);
  Member m;
  std::string plain_key;
  for (;;) {
    Step step = top.NextKey(&m);
    if (step == Step::kMember && m.escaped) {
      MSP_ASSIGN_OR_RETURN(plain_key, UnescapeKey(file_, m.key));
      m.key = plain_key;
    }
    if (step == Step::kMember && m.key == "data") has_data_ = false;
    if (step == Step::kMember && m.key == "data" && text_[m.begin] == '{') {
      size_t end = 0;
      MSP_RETURN_IF_ERROR(ReadData(m.begin, &end));
      if (end == kNoEnd) break;
      top.Continue(end);
      continue;
    }
    if (step == Step::kMember) step = top.SkipValue(&m);
    if (step == Step::kMember) {
      MSP_RETURN_IF_ERROR(ReadHeader(m));
    } else if (step == Step::kEnd) {
      MSP_RETURN_IF_ERROR(CheckEnd(file_, text_, top.position()));
      break;
    } else if (step == Step::kBad) {
      return BadByte(file_, text_, top.position(), top.expected());
    } else if (has_data_) {
      Truncate();
      break;
    } else {
      return BadInput(file_.path() + " ends at byte " + std::to_string(text_.size()) +
                      ", before any op: the run was probably killed at its first write, dump again");
    }
  }
  if (!has_data_) {
    return BadInput(file_.path() +
                    " is JSON but not a dump: it has no object \"data\", give a dump.json or debug.json");
  }
  dump_->ops_.shrink_to_fit();
  return OkStatus();
}

Status DumpIndexer::ReadHeader(const Member& m) {
  std::string* field = m.key == "task"            ? &dump_->task_
                       : m.key == "level"         ? &dump_->level_
                       : m.key == "framework"     ? &dump_->framework_
                       : m.key == "dump_data_dir" ? &dump_->dump_data_dir_
                                                  : nullptr;
  if (!field) return OkStatus();
  field->clear();
  if (text_[m.begin] != '"') return OkStatus();
  MSP_RETURN_IF_ERROR(ParseJson(text_.substr(m.begin, m.end - m.begin), file_.path(), &doc_, m.begin));
  *field = Text(doc_);
  return OkStatus();
}

Status DumpIndexer::ReadData(size_t open, size_t* end) {
  has_data_ = true;
  dump_->ops_.clear();
  dump_->unescaped_.clear();
  dump_->slots_.clear();
  MemberScanner data(text_, open + 1);
  Member m;
  for (;;) {
    switch (data.Next(&m)) {
      case Step::kMember: MSP_RETURN_IF_ERROR(AddOp(m)); break;
      case Step::kEnd: *end = data.position(); return OkStatus();
      case Step::kBad: return BadByte(file_, text_, data.position(), data.expected());
      case Step::kTruncated:
        Truncate();
        *end = kNoEnd;
        return OkStatus();
    }
  }
}

Status DumpIndexer::AddOp(const Member& m) {
  if (m.end - released_ >= kReleaseBytes) {
    if (InterruptRequested()) return Interrupted();
    file_.Release(released_, m.begin);
    released_ = m.begin;
  }
  std::string_view name = m.key;
  if (m.escaped) {
    MSP_ASSIGN_OR_RETURN(std::string plain, UnescapeKey(file_, m.key));
    name = dump_->unescaped_.emplace_back(std::move(plain));
  }
  auto& ops = dump_->ops_;
  auto& slots = dump_->slots_;
  if (ops.size() * 2 >= slots.size()) Rehash();
  const OpSpan op{name, m.begin, m.end - m.begin};
  const uint32_t hash = HashName(name);
  const size_t slot = dump_->SlotOf(name, hash);
  if (slots[slot]) {
    ops[static_cast<uint32_t>(slots[slot]) - 1] = op;
    return OkStatus();
  }
  if (ops.size() >= std::numeric_limits<uint32_t>::max() - 1) {
    return BadInput(file_.path() + " holds more than 4 billion ops: no dump does, check where the file comes from");
  }
  ops.push_back(op);
  slots[slot] = uint64_t{hash} << 32 | ops.size();
  return OkStatus();
}

void DumpIndexer::Rehash() {
  std::vector<uint64_t> grown(std::max<size_t>(1024, dump_->slots_.size() * 2), 0);
  const size_t mask = grown.size() - 1;
  for (const uint64_t entry : dump_->slots_) {
    if (!entry) continue;
    size_t slot = (entry >> 32) & mask;
    while (grown[slot]) slot = (slot + 1) & mask;
    grown[slot] = entry;
  }
  dump_->slots_ = std::move(grown);
}

void DumpIndexer::Truncate() {
  dump_->truncated_ = file_.path() + " ends at byte " + std::to_string(text_.size()) +
                      " without its closing braces: the run was probably killed; " +
                      std::to_string(dump_->ops_.size()) + " complete ops were recovered";
}

StatusOr<DumpFile> DumpFile::Open(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  DumpFile dump(std::move(file));
  MSP_RETURN_IF_ERROR(DumpIndexer(&dump).Run());
  return dump;
}

size_t DumpFile::SlotOf(std::string_view name, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    const uint64_t entry = slots_[slot];
    if (!entry || (entry >> 32 == hash && ops_[static_cast<uint32_t>(entry) - 1].name == name)) return slot;
  }
}

std::optional<size_t> DumpFile::FindOp(std::string_view name) const {
  if (slots_.empty()) return std::nullopt;
  const uint64_t entry = slots_[SlotOf(name, HashName(name))];
  if (!entry) return std::nullopt;
  return static_cast<uint32_t>(entry) - 1;
}

Status DumpFile::ParseOp(size_t index, JsonDoc* doc) const {
  const OpSpan& op = ops_[index];
  const std::string_view text = file_.text().substr(op.offset, op.length);
  Status status = ParseJson(text, "op " + Shown(op.name), doc, op.offset);
  return status.ok() ? status : BadInput(path() + ": " + status.message());
}

StatusOr<bool> DumpFile::HasChecksums() const {
  JsonDoc doc;
  std::vector<Item> items;
  size_t tensors = 0;
  for (size_t i = 0; i < ops_.size() && tensors < kTensorsLookedAt; ++i) {
    MSP_RETURN_IF_ERROR(ParseOp(i, &doc));
    items.clear();
    FlattenOp(ops_[i].name, doc, &items);
    for (const Item& item : items) {
      const JsonValue* leaf = item.leaf;
      if (const JsonValue* tensor = Find(*leaf, "tensor")) leaf = tensor;
      if (!Find(*leaf, "shape")) continue;
      ++tensors;
      if (Find(*leaf, "md5")) return true;
    }
  }
  return false;
}

}  // namespace msprobe
