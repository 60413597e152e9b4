#include "capture/stack_table.h"

#include <algorithm>

#include "base/text.h"
#include "json/writer.h"

namespace msprobe {
namespace {

uint64_t MixFrame(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  return h * 0xff51afd7ed558ccdull;
}

}  // namespace

uint32_t StackTable::Intern(std::span<const Frame> frames, bool* is_new) {
  uint64_t hash = frames.size();
  for (const Frame& f : frames) {
    hash = MixFrame(hash, reinterpret_cast<uintptr_t>(f.code));
    hash = MixFrame(hash, static_cast<uint64_t>(f.instruction));
  }
  *is_new = false;
  auto [it, end] = by_hash_.equal_range(hash);
  for (; it != end; ++it) {
    auto known = Frames(it->second);
    if (std::equal(known.begin(), known.end(), frames.begin(), frames.end())) return it->second;
  }
  *is_new = true;
  const auto id = static_cast<uint32_t>(begin_.size());
  if (text_of_.size() <= id) text_of_.resize(std::max<size_t>(2 * id, 64), kNoText);
  begin_.emplace_back(static_cast<uint32_t>(frames_.size()), static_cast<uint32_t>(frames.size()));
  frames_.insert(frames_.end(), frames.begin(), frames.end());
  by_hash_.emplace(hash, id);
  return id;
}

std::span<const Frame> StackTable::Frames(uint32_t id) const {
  return {frames_.data() + begin_[id].first, begin_[id].second};
}

void StackTable::SetText(uint32_t id, StackLines lines) {
  std::string all;
  for (const std::string& line : lines) all.append(line).push_back('\0');
  const auto known = text_index_.find(all);
  if (known != text_index_.end()) {
    text_of_[id] = known->second;
    return;
  }
  texts_.push_back(std::move(lines));  // an index never points beyond them, even where memory ends here
  const auto number = static_cast<int32_t>(texts_.size() - 1);
  text_index_.emplace(std::move(all), number);
  text_of_[id] = number;
}

void StackTable::ResetUses() {
  std::deque<Use>().swap(uses_);
  taken_ = 0;
}

std::vector<StackUse> StackTable::TakeUses() {
  std::vector<StackUse> out;
  out.reserve(uses_.size() - taken_);
  for (; taken_ < uses_.size() && text_of_[uses_[taken_].id] != kNoText; ++taken_) {
    const Use& use = uses_[taken_];
    if (HasText(use.id)) out.push_back({&texts_[static_cast<size_t>(text_of_[use.id])], use.name});
  }
  return out;
}

Status StackTable::WriteAll(const std::function<Status(std::string_view)>& write) const {
  constexpr size_t kPiece = size_t{1} << 20;
  std::vector<size_t> order;  // texts by first use
  std::vector<std::vector<uint32_t>> of_text(texts_.size());
  for (size_t i = 0; i < uses_.size(); ++i) {
    if (!HasText(uses_[i].id)) continue;
    const auto text = static_cast<size_t>(text_of_[uses_[i].id]);
    if (of_text[text].empty()) order.push_back(text);
    of_text[text].push_back(static_cast<uint32_t>(i));
  }
  std::string piece, scratch;
  JsonWriter json(&piece, kJsonIndented);
  json.BeginObject();
  for (size_t k = 0; k < order.size(); ++k) {
    json.Key(std::to_string(k));
    json.BeginArray();
    json.BeginArray();
    for (const uint32_t use : of_text[order[k]]) {
      scratch.clear();
      uses_[use].name.AppendTo(&scratch);
      json.String(scratch);
      if (piece.size() < kPiece) continue;
      MSP_RETURN_IF_ERROR(write(piece));
      piece.clear();
    }
    json.EndArray();
    json.BeginArray();
    for (const std::string& line : texts_[order[k]]) json.String(line);
    json.EndArray();
    json.EndArray();
  }
  json.EndObject();
  return write(piece);
}

void AppendStackGroups(std::span<const StackUse> uses, uint64_t* next_key, std::string* out) {
  std::vector<const StackLines*> order;
  std::unordered_map<const StackLines*, std::vector<const OpName*>> names;
  for (const StackUse& use : uses) {
    auto& of_stack = names[use.lines];
    if (of_stack.empty()) order.push_back(use.lines);
    of_stack.push_back(&use.name);
  }
  std::string scratch;
  JsonWriter json(out, kJsonIndented, 1);
  for (const StackLines* lines : order) {
    json.Key(std::to_string((*next_key)++));
    json.BeginArray();
    json.BeginArray();
    for (const OpName* name : names[lines]) {
      scratch.clear();
      name->AppendTo(&scratch);
      json.String(scratch);
    }
    json.EndArray();
    json.BeginArray();
    for (const std::string& line : *lines) json.String(line);
    json.EndArray();
    json.EndArray();
  }
}

uint64_t StackGroupBytes::Add(std::span<const StackUse> uses) {
  constexpr uint64_t kBetween = 2, kGroup = 24;  // comma and space; a number of eight digits, brackets, a new line
  uint64_t bytes = 0;
  std::string text, scratch;
  for (const StackUse& use : uses) {
    text.clear(), scratch.clear();
    use.name.AppendTo(&scratch);
    AppendJsonString(text, scratch);
    bytes += text.size() + kBetween;
    if (!seen_.insert(use.lines).second) continue;
    text.clear();
    for (const std::string& line : *use.lines) AppendJsonString(text, line);
    bytes += text.size() + use.lines->size() * kBetween + kGroup;
  }
  return bytes;
}

}  // namespace msprobe
