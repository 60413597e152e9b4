// stack.json and construct.json.
#include <charconv>
#include <functional>
#include <limits>

#include "base/text.h"
#include "dump/construct_lines.h"
#include "dump/members.h"
#include "dump/reader.h"
#include "dump/scan.h"

namespace msprobe {
namespace {

Status WrongEntry(const MappedFile& file, std::string_view key, size_t at, std::string_view expected) {
  return BadInput(file.path() + " has an entry " + Shown(key) + " at byte " + std::to_string(at) + " that is not " +
                  std::string(expected) + ": check that the file belongs to the dump");
}

bool AllStrings(const JsonValue& v) {
  for (const JsonValue& s : v.GetArray()) {
    if (!s.IsString()) return false;
  }
  return true;
}

std::vector<std::string> Strings(const JsonValue& v) {
  std::vector<std::string> out;
  out.reserve(v.Size());
  for (const JsonValue& s : v.GetArray()) out.emplace_back(Text(s));
  return out;
}

}  // namespace

StatusOr<StackFile> StackFile::Open(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  StackFile stacks;
  JsonDoc doc;
  // In the form {op: [frames]} many ops repeat the same text: equal text is parsed once.
  std::unordered_map<std::string_view, uint32_t> seen;
  std::vector<std::string> frame_key;
  const auto add = [&](const JsonValue& frames) {
    stacks.stacks_.push_back(Strings(frames));
    return static_cast<uint32_t>(stacks.stacks_.size() - 1);
  };
  const auto take = [&](std::string_view key, std::string_view text, size_t at) -> Status {
    if (const auto known = seen.find(text); known != seen.end()) {
      stacks.by_op_.insert_or_assign(std::string(key), known->second);
      return OkStatus();
    }
    Status status = ParseJson(text, file.path(), &doc, at);
    if (!status.ok()) return status;
    if (!doc.IsArray()) return WrongEntry(file, key, at, "a list of frames");
    const bool grouped = doc.Size() == 2 && doc[0].IsArray() && doc[1].IsArray();
    if (grouped) {
      if (!AllStrings(doc[0]) || !AllStrings(doc[1])) return WrongEntry(file, key, at, "[[ops], [frames]]");
      const uint32_t id = add(doc[1]);
      for (const JsonValue& op : doc[0].GetArray()) stacks.by_op_.insert_or_assign(std::string(Text(op)), id);
      return OkStatus();
    }
    if (!AllStrings(doc)) return WrongEntry(file, key, at, "a list of frames");
    const uint32_t id = add(doc);
    seen.emplace(text, id);
    stacks.by_op_.insert_or_assign(std::string(key), id);
    return OkStatus();
  };
  MSP_RETURN_IF_ERROR(ForEachMember(file, "a stack.json", &stacks.truncated_, take));
  return stacks;
}

std::optional<uint32_t> StackFile::StackOf(std::string_view op) const {
  const auto it = by_op_.find(op);
  if (it == by_op_.end()) return std::nullopt;
  return it->second;
}

namespace {

/// parent | null | "" | [parent, micro step]
Status ReadParent(const MappedFile& file, std::string_view key, std::string_view text, size_t at, JsonDoc* doc,
                  ConstructEntry* entry) {
  constexpr std::string_view kExpected = "the name of a parent, null or [parent, micro step]";
  MSP_RETURN_IF_ERROR(ParseJson(text, file.path(), doc, at));
  const JsonValue* parent = doc;
  if (doc->IsArray()) {
    if (doc->Size() != 2 || !(*doc)[1].IsInt()) return WrongEntry(file, key, at, kExpected);
    parent = &(*doc)[0];
    entry->micro_step = (*doc)[1].GetInt();
  }
  if (parent->IsString()) {
    entry->parent = Text(*parent);
  } else if (!parent->IsNull()) {
    return WrongEntry(file, key, at, kExpected);
  }
  return OkStatus();
}

}  // namespace

StatusOr<ParentIndex> ParentIndex::Open(const std::string& path) {
  constexpr size_t kBytesPerEntry = 80;
  ParentIndex index;
  MSP_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Open(path));
  index.file_ = std::make_unique<MappedFile>(std::move(mapped));
  const MappedFile& file = *index.file_;
  const std::string_view whole = file.text();
  index.parents_.reserve(whole.size() / kBytesPerEntry);
  index.names_.reserve(whole.size() / kBytesPerEntry);
  const auto keep = [&](std::string_view text) -> std::string_view {
    const bool in_file = text.data() >= whole.data() && text.data() + text.size() <= whole.data() + whole.size();
    return in_file ? text : index.unescaped_.emplace_back(text);
  };
  JsonDoc doc;
  const auto take = [&](std::string_view key, std::string_view text, size_t at) -> Status {
    if (key == "megatron_micro_step_number") return OkStatus();
    std::string_view parent;
    if (text.size() >= 2 && text[0] == '"' && text.find('\\') == std::string_view::npos && IsUtf8(text)) {
      parent = text.substr(1, text.size() - 2);
    } else if (text != "null") {
      ConstructEntry entry;
      MSP_RETURN_IF_ERROR(ReadParent(file, key, text, at, &doc, &entry));
      parent = keep(entry.parent);
    }
    const std::string_view name = keep(key);
    if (index.parents_.insert_or_assign(name, parent).second) index.names_.push_back(name);
    return OkStatus();
  };
  MSP_RETURN_IF_ERROR(ForEachMember(file, "a construct.json", &index.truncated_, take));
  return index;
}

namespace {

/// Where an entry of that name is: a hash table of positions, which costs no copy of the names.
class EntryIndex {
 public:
  explicit EntryIndex(const std::vector<ConstructLine>* entries) : entries_(*entries), slots_(1024) {}
  /// The position of `name`; when it is new, that of the entry to be added next.
  size_t Find(std::string_view name) {
    if (entries_.size() * 2 >= slots_.size()) Grow();
    const uint64_t hash = std::hash<std::string_view>()(name), high = hash & ~kLow;
    for (size_t i = hash;; ++i) {
      uint64_t& slot = slots_[i & (slots_.size() - 1)];
      if (slot == 0) slot = high | (entries_.size() + 1);
      const size_t at = (slot & kLow) - 1;
      if (at == entries_.size() || ((slot & ~kLow) == high && entries_[at].name == name)) return at;
    }
  }

 private:
  static constexpr uint64_t kLow = 0xFFFFFFFF;
  void Grow() {
    slots_.assign(slots_.size() * 2, 0);
    for (size_t at = 0; at < entries_.size(); ++at) {
      const uint64_t hash = std::hash<std::string_view>()(entries_[at].name);
      size_t i = hash;
      while (slots_[i & (slots_.size() - 1)] != 0) ++i;
      slots_[i & (slots_.size() - 1)] = (hash & ~kLow) | (at + 1);
    }
  }
  const std::vector<ConstructLine>& entries_;
  std::vector<uint64_t> slots_;  // hash in the upper half, position + 1 in the lower
};

}  // namespace

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
  EntryIndex index(&construct.entries);
  const auto take = [&](std::string_view key, std::string_view text, size_t at) -> Status {
    if (key == "megatron_micro_step_number") {
      MSP_RETURN_IF_ERROR(ParseJson(text, file.path(), &doc, at));
      if (!doc.IsInt()) return WrongEntry(file, key, at, "a whole number");
      construct.megatron_micro_steps = doc.GetInt();
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
    const size_t known = index.Find(key);
    if (known == construct.entries.size()) {
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
