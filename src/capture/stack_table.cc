#include "capture/stack_table.h"

#include <algorithm>

#include "dump/writer.h"

namespace msprobe {
namespace {

uint64_t Mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  return h * 0xff51afd7ed558ccdull;
}

}  // namespace

uint32_t StackTable::Intern(std::span<const Frame> frames, bool* is_new) {
  uint64_t hash = frames.size();
  for (const Frame& f : frames) {
    hash = Mix(hash, reinterpret_cast<uintptr_t>(f.code));
    hash = Mix(hash, static_cast<uint64_t>(f.instruction));
  }
  *is_new = false;
  auto [it, end] = by_hash_.equal_range(hash);
  for (; it != end; ++it) {
    auto known = Frames(it->second);
    if (std::equal(known.begin(), known.end(), frames.begin(), frames.end())) return it->second;
  }
  *is_new = true;
  const auto id = static_cast<uint32_t>(begin_.size());
  begin_.emplace_back(static_cast<uint32_t>(frames_.size()), static_cast<uint32_t>(frames.size()));
  frames_.insert(frames_.end(), frames.begin(), frames.end());
  by_hash_.emplace(hash, id);
  return id;
}

std::span<const Frame> StackTable::Frames(uint32_t id) const {
  return {frames_.data() + begin_[id].first, begin_[id].second};
}

void StackTable::SetText(uint32_t id, std::vector<std::string> lines) {
  std::string all;
  for (const std::string& line : lines) all.append(line).push_back('\0');
  auto [it, fresh] = text_index_.emplace(std::move(all), static_cast<int32_t>(texts_.size()));
  if (fresh) texts_.push_back(std::move(lines));
  if (text_of_.size() <= id) text_of_.resize(id + 1, -1);
  text_of_[id] = it->second;
}

std::string StackTable::Json() const {
  std::vector<int32_t> order;  // texts by first use
  std::vector<std::vector<const OpName*>> names(texts_.size());
  for (const Use& use : uses_) {
    if (!HasText(use.id)) continue;
    const int32_t text = text_of_[use.id];
    if (names[static_cast<size_t>(text)].empty()) order.push_back(text);
    names[static_cast<size_t>(text)].push_back(&use.name);
  }
  std::string out, scratch;
  JsonStream json(&out);
  json.BeginObject();
  for (size_t i = 0; i < order.size(); ++i) {
    const auto text = static_cast<size_t>(order[i]);
    json.Key(std::to_string(i));
    json.BeginArray();
    json.BeginArray();
    for (const OpName* name : names[text]) {
      scratch.clear();
      name->AppendTo(&scratch);
      json.String(scratch);
    }
    json.EndArray();
    json.BeginArray();
    for (const std::string& line : texts_[text]) json.String(line);
    json.EndArray();
    json.EndArray();
  }
  json.EndObject();
  return out;
}

}  // namespace msprobe
