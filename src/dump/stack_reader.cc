// stack.json and construct.json.
#include <charconv>
#include <functional>
#include <limits>

#include "base/message.h"
#include "base/text.h"
#include "dump/construct_lines.h"
#include "dump/reader.h"
#include "json/members.h"
#include "json/parser.h"
#include "json/scan.h"

namespace msprobe {
namespace {

Status WrongEntry(const MappedFile& file, std::string_view key, size_t at, std::string_view expected) {
  return BadInput(Msg("{} has an entry {} at byte {} that is not {}: check that the file belongs to the dump",
                      file.path(), Shown(key), at, KnownText(expected)));
}

bool AllStrings(const JsonValue& v) {
  for (const JsonValue& s : v.Items()) {
    if (!s.IsString()) return false;
  }
  return true;
}

std::vector<std::string> Strings(const JsonValue& v) {
  std::vector<std::string> out;
  out.reserve(v.size());
  for (const JsonValue& s : v.Items()) out.emplace_back(s.Text());
  return out;
}

}  // namespace

/// Fills a StackFile.
class StackReader {
 public:
  StackReader(const MappedFile& file, StackFile* out) : file_(file), out_(*out) {}

  Status Take(std::string_view key, std::string_view text, size_t at) {
    if (const auto known = seen_.find(text); known != seen_.end()) return Set(key, known->second);
    if (const size_t frames = FramesOfGroup(text); frames != kNoEnd) return TakeGroup(text, frames, key, at);
    MSP_RETURN_IF_ERROR(ParseJson(text, file_.path(), &doc_, at));
    if (!doc_.IsArray()) return WrongEntry(file_, key, at, "a list of frames");
    if (doc_.size() == 2 && doc_[0].IsArray() && doc_[1].IsArray()) {
      if (!AllStrings(doc_[0]) || !AllStrings(doc_[1])) return WrongEntry(file_, key, at, "[[ops], [frames]]");
      const uint32_t id = Add(doc_[1]);
      for (const JsonValue& op : doc_[0].Items()) MSP_RETURN_IF_ERROR(Set(op.Text(), id));
      return OkStatus();
    }
    if (!AllStrings(doc_)) return WrongEntry(file_, key, at, "a list of frames");
    const uint32_t id = Add(doc_);
    seen_.emplace(text, id);
    return Set(key, id);
  }

 private:
  /// Calls take(name between its quotes, whether it is not as it is meant) for the strings of the list that opens at
  /// `pos`. The result is behind the list; kNoEnd for a list of something else, or one that only a lenient parser
  /// reads.
  template <typename TakeName>
  static StatusOr<size_t> ForEachName(std::string_view text, size_t pos, const TakeName& take_name) {
    for (;;) {
      pos = SkipSpace(text, pos + 1);
      if (pos >= text.size() || text[pos] != '"') return kNoEnd;
      bool escaped = false;
      const size_t end = FindStringEnd(text, pos + 1, &escaped);
      if (end == kNoEnd) return kNoEnd;
      const std::string_view name = text.substr(pos + 1, end - pos - 1);
      MSP_RETURN_IF_ERROR(take_name(name, escaped));
      pos = SkipSpace(text, end + 1);
      if (pos >= text.size() || (text[pos] != ',' && text[pos] != ']')) return kNoEnd;
      if (text[pos] == ']') return pos + 1;
    }
  }

  /// Where the frames of [[ops], [frames]] start; kNoEnd when it must be parsed whole, which takes many times the
  /// memory: one group may name most ops of a run.
  static size_t FramesOfGroup(std::string_view text) {
    const size_t list = SkipSpace(text, 1);
    if (text.empty() || text[0] != '[' || list >= text.size() || text[list] != '[') return kNoEnd;
    bool control = false;
    const StatusOr<size_t> end = ForEachName(text, list, [&](std::string_view name, bool) -> Status {
      for (const char c : name) control = control || static_cast<unsigned char>(c) < 0x20;
      return OkStatus();
    });
    if (!end.ok() || *end == kNoEnd || control) return kNoEnd;
    const size_t comma = SkipSpace(text, *end);
    if (comma >= text.size() || text[comma] != ',') return kNoEnd;
    const size_t frames = SkipSpace(text, comma + 1);
    if (frames >= text.size() || text[frames] != '[') return kNoEnd;
    const size_t close = FindContainerEnd(text, frames);
    return close != kNoEnd && SkipSpace(text, close) == text.size() - 1 ? frames : kNoEnd;
  }

  Status TakeGroup(std::string_view text, size_t frames, std::string_view key, size_t at) {
    const std::string_view list = text.substr(frames, text.size() - 1 - frames);
    MSP_RETURN_IF_ERROR(ParseJson(list, file_.path(), &doc_, at + frames));
    if (!doc_.IsArray() || !AllStrings(doc_)) return WrongEntry(file_, key, at, "[[ops], [frames]]");
    const uint32_t id = Add(doc_);
    const auto set = [&](std::string_view name, bool escaped) -> Status {
      if (!escaped && IsUtf8(name)) return Set(name, id);
      MSP_ASSIGN_OR_RETURN(const std::string plain, UnescapeKey(file_, name));
      return Set(plain, id);
    };
    return ForEachName(text, SkipSpace(text, 1), set).status();
  }

  uint32_t Add(const JsonValue& frames) {
    out_.stacks_.push_back(Strings(frames));
    return static_cast<uint32_t>(out_.stacks_.size() - 1);
  }

  Status Set(std::string_view op, uint32_t id) {
    if (out_.ids_.size() >= NamesByHash::kMost) {
      return BadInput(Msg("{} names more than 4 billion ops: check where the file comes from", file_.path()));
    }
    out_.ops_.Add(op);
    out_.ids_.push_back(id);
    return OkStatus();
  }

  const MappedFile& file_;
  StackFile& out_;
  JsonDoc doc_;
  // In the form {op: [frames]} many ops repeat the same text: equal text is parsed once.
  std::unordered_map<std::string_view, uint32_t> seen_;
};

StatusOr<StackFile> StackFile::Open(const std::string& path) {
  StackFile stacks;
  MSP_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Open(path));
  stacks.file_ = std::make_unique<MappedFile>(std::move(mapped));
  const MappedFile& file = *stacks.file_;
  stacks.ops_ = NamesByHash(file.text());
  StackReader reader(file, &stacks);
  const auto take = [&](std::string_view key, std::string_view text, size_t at) { return reader.Take(key, text, at); };
  MSP_RETURN_IF_ERROR(ForEachMember(file, "a stack.json", &stacks.truncated_, take));
  stacks.ops_.Finish([&](uint32_t first, uint32_t last) { stacks.ids_[first] = stacks.ids_[last]; },
                     [&](const std::vector<bool>& gone) { NamesByHash::Compact(gone, &stacks.ids_); });
  return stacks;
}

std::optional<uint32_t> StackFile::StackOf(std::string_view op) const {
  const size_t at = ops_.Find(op);
  if (at == NamesByHash::kNone) return std::nullopt;
  return ids_[at];
}

namespace {

/// parent | null | "" | [parent, micro step]
Status ReadParent(const MappedFile& file, std::string_view key, std::string_view text, size_t at, JsonDoc* doc,
                  ConstructEntry* entry) {
  constexpr std::string_view kExpected = "the name of a parent, null or [parent, micro step]";
  MSP_RETURN_IF_ERROR(ParseJson(text, file.path(), doc, at));
  const JsonValue* parent = doc;
  if (doc->IsArray()) {
    if (doc->size() != 2 || !(*doc)[1].IsInt32()) return WrongEntry(file, key, at, kExpected);
    parent = &(*doc)[0];
    entry->micro_step = (*doc)[1].Int32();
  }
  if (parent->IsString()) {
    entry->parent = parent->Text();
  } else if (!parent->IsNull()) {
    return WrongEntry(file, key, at, kExpected);
  }
  return OkStatus();
}

}  // namespace

Status ParentIndex::Add(std::string_view name, std::string_view parent) {
  if (names_.size() >= NamesByHash::kMost || parents_.size() >= NamesByHash::kMost) {
    return BadInput(Msg("{} holds more than 4 billion nodes: check where it comes from", file_->path()));
  }
  const bool same = parents_.size() > 0 && parents_[parents_.size() - 1] == parent;
  if (!same) parents_.Add(parent);
  names_.Add(name);
  parent_of_.push_back(static_cast<uint32_t>(parents_.size() - 1));
  return OkStatus();
}

StatusOr<ParentIndex> ParentIndex::Open(const std::string& path) {
  ParentIndex index;
  MSP_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Open(path));
  index.file_ = std::make_unique<MappedFile>(std::move(mapped));
  const MappedFile& file = *index.file_;
  index.names_ = NamesByHash(file.text());
  index.parents_ = NameList(file.text());
  JsonDoc doc;
  const auto take = [&](std::string_view key, std::string_view text, size_t at) -> Status {
    if (key == "megatron_micro_step_number") return OkStatus();
    if (text.size() >= 2 && text[0] == '"' && text.find('\\') == std::string_view::npos && IsUtf8(text)) {
      return index.Add(key, text.substr(1, text.size() - 2));
    }
    ConstructEntry entry;
    if (text != "null") MSP_RETURN_IF_ERROR(ReadParent(file, key, text, at, &doc, &entry));
    return index.Add(key, entry.parent);
  };
  MSP_RETURN_IF_ERROR(ForEachMember(file, "a construct.json", &index.truncated_, take));
  index.names_.Finish([&](uint32_t first, uint32_t last) { index.parent_of_[first] = index.parent_of_[last]; },
                      [&](const std::vector<bool>& gone) { NamesByHash::Compact(gone, &index.parent_of_); });
  return index;
}

StatusOr<ConstructLines> ConstructLines::Open(const std::string& path) {
  constexpr size_t kBytesPerEntry = 80;
  ConstructLines construct;
  MSP_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Open(path));
  construct.file = std::make_unique<MappedFile>(std::move(mapped));
  const MappedFile& file = *construct.file;
  const std::string_view whole = file.text();
  construct.entries.reserve(whole.size() / kBytesPerEntry);
  const auto keep = [&](std::string_view text) -> std::string_view {
    const bool in_file = text.data() >= whole.data() && text.data() + text.size() <= whole.data() + whole.size();
    return in_file ? text : construct.unescaped.emplace_back(text);
  };
  JsonDoc doc;
  const auto take = [&](std::string_view key, std::string_view text, size_t at) -> Status {
    if (key == "megatron_micro_step_number") {
      MSP_RETURN_IF_ERROR(ParseJson(text, file.path(), &doc, at));
      if (!doc.IsInt32()) return WrongEntry(file, key, at, "a whole number");
      construct.megatron_micro_steps = doc.Int32();
      return OkStatus();
    }
    ConstructLine line;
    const bool plain = text.size() >= 2 && text[0] == '"' && text.find('\\') == std::string_view::npos && IsUtf8(text);
    if (plain) {
      line.parent = text.substr(1, text.size() - 2);
    } else if (text != "null") {
      ConstructEntry entry;
      MSP_RETURN_IF_ERROR(ReadParent(file, key, text, at, &doc, &entry));
      const size_t in = text.find(entry.parent);
      line.parent = in == std::string_view::npos ? construct.unescaped.emplace_back(std::move(entry.parent))
                                                 : text.substr(in, entry.parent.size());
      line.micro_step = entry.micro_step;
    }
    const size_t next = construct.entries.size();
    if (next >= SlotTable::kNone) {
      return BadInput(Msg("{} holds more than 4 billion nodes: check where it comes from", file.path()));
    }
    const uint32_t known = construct.index.Enter(HashName(key), static_cast<uint32_t>(next),
                                                 [&](uint32_t i) { return construct.entries[i].name == key; });
    if (known == next) {
      line.name = keep(key);
      construct.entries.push_back(line);
    } else {
      line.name = construct.entries[known].name;
      construct.entries[known] = line;
    }
    return OkStatus();
  };
  MSP_RETURN_IF_ERROR(ForEachMember(file, "a construct.json", &construct.truncated, take));
  return construct;
}

StatusOr<ConstructFile> ConstructFile::Open(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(ConstructLines lines, ConstructLines::Open(path));
  ConstructFile construct;
  construct.megatron_micro_steps = lines.megatron_micro_steps;
  construct.truncated = std::move(lines.truncated);
  construct.entries.reserve(lines.entries.size());
  for (const ConstructLine& line : lines.entries) {
    construct.entries.push_back({std::string(line.name), std::string(line.parent), line.micro_step});
  }
  return construct;
}

}  // namespace msprobe
