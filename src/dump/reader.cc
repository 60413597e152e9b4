#include "dump/reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <utility>

#include "base/interrupt.h"
#include "base/message.h"
#include "dump/flatten.h"
#include "json/members.h"
#include "json/parser.h"
#include "json/scan.h"

namespace msprobe {
namespace {

using Step = MemberScanner::Step;

// Pages behind the scan are handed back in pieces of this size, so that indexing a 10 GB file does not fill memory.
constexpr size_t kReleaseBytes = size_t{64} << 20;
constexpr size_t kTensorsLookedAt =
    1000;  // by FindChecksums before it says no: checksums are on for all tensors or none

}  // namespace

struct DumpFile::SharedParents {
  std::mutex mutex;
  std::optional<StatusOr<std::shared_ptr<const ParentIndex>>> opened;
};

DumpFile::DumpFile(MappedFile file) : file_(std::move(file)), parents_(std::make_shared<SharedParents>()) {
  ops_.names_ = NamesByHash(file_.text());
}

void OpList::Clear() {
  names_.Clear();
  extents_ = {};
  long_.clear();
}

void OpList::Add(std::string_view name, uint64_t offset, uint64_t length) {
  names_.Add(name);
  if (length >= kLong) long_.emplace(extents_.size(), length);
  extents_.push_back(std::min(length, kLong) << kLengthShift | offset);
}

void OpList::Finish() {
  const auto take = [this](uint32_t first, uint32_t last) {
    extents_[first] = extents_[last];
    long_.erase(first);
    if (const auto it = long_.find(last); it != long_.end()) long_[first] = it->second;
  };
  const auto drop = [this](const std::vector<bool>& gone) {
    NamesByHash::Compact(gone, &extents_);
    std::unordered_map<size_t, uint64_t> moved;
    size_t to = 0;
    for (size_t i = 0; i < gone.size(); ++i) {
      if (gone[i]) continue;
      if (const auto it = long_.find(i); it != long_.end()) moved.emplace(to, it->second);
      ++to;
    }
    long_ = std::move(moved);
  };
  names_.Finish(take, drop);
}

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
      return BadInput(
          Msg("{} ends at byte {}, before any op: the run was probably killed at its first write, dump again",
              file_.path(), text_.size()));
    }
  }
  if (!has_data_) {
    return BadInput(
        Msg("{} is JSON but not a dump: it has no object \"data\", give a dump.json or debug.json", file_.path()));
  }
  return OkStatus();
}

Status DumpIndexer::ReadHeader(const Member& m) {
  std::string* field = m.key == "task"            ? &dump_->task_
                       : m.key == "level"         ? &dump_->level_
                       : m.key == "framework"     ? &dump_->framework_
                       : m.key == "dump_data_dir" ? &dump_->dump_data_dir_
                                                  : nullptr;
  if (m.key == "schedule") dump_->schedule_ = text_.substr(m.begin, m.end - m.begin);
  if (!field) return OkStatus();
  field->clear();
  if (text_[m.begin] != '"') return OkStatus();
  MSP_RETURN_IF_ERROR(ParseJson(text_.substr(m.begin, m.end - m.begin), file_.path(), &doc_, m.begin));
  *field = doc_.Text();
  return OkStatus();
}

Status DumpIndexer::ReadData(size_t open, size_t* end) {
  has_data_ = true;
  dump_->ops_.Clear();
  MemberScanner data(text_, open + 1);
  Member m;
  for (;;) {
    switch (data.Next(&m)) {
      case Step::kMember: MSP_RETURN_IF_ERROR(AddOp(m)); break;
      case Step::kEnd:
        dump_->ops_.Finish();
        *end = data.position();
        return OkStatus();
      case Step::kBad: return BadByte(file_, text_, data.position(), data.expected());
      case Step::kTruncated:
        dump_->ops_.Finish();
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
  OpList& ops = dump_->ops_;
  if (ops.size() >= NamesByHash::kMost) {
    return BadInput(
        Msg("{} holds more than 4 billion ops: no dump does, check where the file comes from", file_.path()));
  }
  if (!m.escaped) {
    ops.Add(m.key, m.begin, m.end - m.begin);
    return OkStatus();
  }
  MSP_ASSIGN_OR_RETURN(const std::string plain, UnescapeKey(file_, m.key));
  ops.Add(plain, m.begin, m.end - m.begin);
  return OkStatus();
}

void DumpIndexer::Truncate() {
  dump_->truncated_ =
      Msg("{} ends at byte {} without its closing braces: the run was probably killed; {} complete ops were recovered",
          file_.path(), text_.size(), dump_->ops_.size());
}

StatusOr<DumpFile> DumpFile::Open(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  if (file.text().size() > OpList::kOffsetBits) {
    return BadInput(Msg("{} is larger than a terabyte: no dump is, check where the file comes from", path));
  }
  DumpFile dump(std::move(file));
  MSP_RETURN_IF_ERROR(DumpIndexer(&dump).Run());
  dump.wholeness_ = WholenessOf(std::string(DirName(path)), dump.ops().size(), !dump.truncated().empty());
  return dump;
}

std::optional<size_t> DumpFile::FindOp(std::string_view name) const {
  const size_t at = ops_.names_.Find(name);
  if (at == NamesByHash::kNone) return std::nullopt;
  return at;
}

Status DumpFile::ParseOp(size_t index, JsonDoc* doc) const {
  const OpSpan op = ops_[index];
  const std::string_view text = file_.text().substr(op.offset, op.length);
  if (ParseJson(text, {}, doc, op.offset).ok()) return OkStatus();
  // Only an error needs the name, and it is rare.
  const Status status = ParseJson(text, "op " + Shown(op.name), doc, op.offset);
  return BadInput(Msg("{}: {}", path(), status.text()));
}

StatusOr<Checksums> DumpFile::FindChecksums() const {
  JsonDoc doc;
  std::vector<Item> items;
  size_t tensors = 0;
  for (size_t i = 0; i < ops_.size() && tensors < kTensorsLookedAt; ++i) {
    MSP_RETURN_IF_ERROR(ParseOp(i, &doc));
    items.clear();
    FlattenOp(ops_.NameAt(i), doc, &items);
    for (const Item& item : items) {
      const JsonValue* leaf = item.leaf;
      if (const JsonValue* tensor = leaf->Find("tensor")) leaf = tensor;
      if (!leaf->Find("shape")) continue;
      ++tensors;
      if (leaf->Find("md5")) return Checksums::kPresent;
    }
  }
  return tensors > 0 ? Checksums::kAbsent : Checksums::kNoTensors;
}

}  // namespace msprobe
