#include "graph/flow/name_index.h"

#include "graph/flow/flow.h"

namespace msprobe {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Calls `put` for each character of the pattern.
template <typename F>
void WalkPattern(std::string_view name, F&& put) {
  for (size_t i = 0; i < name.size();) {
    size_t end = i;
    while (end < name.size() && IsDigit(name[end])) ++end;
    if (end > i && (end == name.size() || name[end] == '.')) {
      put('#');
      i = end;
    }
    // To the end of the segment.
    while (i < name.size() && name[i] != '.') put(name[i++]);
    if (i < name.size()) put(name[i++]);
  }
}

/// Whether `text` can begin at the beginning of `pattern`. Only the end of `text` may stand inside a number.
bool Begins(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0;
  while (t < text.size()) {
    if (p == pattern.size()) return false;
    if (pattern[p] == '#' && IsDigit(text[t])) {
      while (t < text.size() && IsDigit(text[t])) ++t;
      ++p;
      continue;
    }
    if (Lower(pattern[p++]) != Lower(text[t++])) return false;
  }
  return true;
}

}  // namespace

std::string NamePattern(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  WalkPattern(name, [&](char c) { out += c; });
  return out;
}

uint64_t NamePatternHash(std::string_view name) {
  uint64_t h = 0xCBF29CE484222325ull;
  WalkPattern(name, [&](char c) { h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ull; });
  return h;
}

bool PatternMayContain(std::string_view pattern, std::string_view text) {
  if (text.empty()) return true;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (Begins(pattern.substr(i), text)) return true;
  }
  return false;
}

void PatternIndex::Add(uint32_t node, std::string_view name, uint64_t hash) {
  const auto [it, fresh] = known_.try_emplace(hash, static_cast<uint32_t>(patterns_.size()));
  if (fresh) patterns_.push_back({NamePattern(name), 0, "", 0});
  Pattern& p = patterns_[it->second];
  AppendVarint(p.packed, node - p.last);
  p.last = node;
  ++p.nodes;
}

bool UnpackNodes(std::string_view packed, std::vector<uint32_t>* nodes) {
  uint64_t node = 0;
  while (!packed.empty()) {
    uint64_t step = 0;
    if (!TakeVarint(&packed, &step) || step > UINT32_MAX || node + step > UINT32_MAX) return false;
    node += step;
    nodes->push_back(static_cast<uint32_t>(node));
  }
  return true;
}

}  // namespace msprobe
