#include "trend/trend_tags.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"

namespace msprobe {
namespace {

std::string Joined(const std::vector<std::string_view>& parts, size_t begin, size_t end) {
  std::string out;
  for (size_t i = begin; i < end; ++i) out.append(i > begin ? "." : "").append(parts[i]);
  return out;
}

// "a.b.3.c.d" -> layer "b.3"; modules "a" and "c.d": what stands before and between layers.
void AddLayers(const std::vector<std::string_view>& words, std::set<TrendTag>* tags) {
  size_t done = 0;  // words before it are in a tag
  for (size_t i = 0; i < words.size(); ++i) {
    if (!IsDigits(words[i])) continue;
    if (i > done) {
      tags->emplace(Joined(words, i - 1, i + 1), "layer");
      if (i - 1 > done) tags->emplace(Joined(words, done, i - 1), "module");
    }
    done = i + 1;
  }
  if (done < words.size()) tags->emplace(Joined(words, done, words.size()), "module");
}

}  // namespace

std::set<TrendTag> DumpTags(std::string_view target) {
  constexpr std::string_view kParameters = "parameters";
  std::vector<std::string_view> parts = Split(target, '.');
  if (parts.size() < 3) return {};
  std::set<TrendTag> tags{{Joined(parts, parts.size() - 2, parts.size()), "index"}};
  if (std::find(parts.begin(), parts.end(), kParameters) != parts.end()) tags.emplace(kParameters, "default");
  parts.resize(parts.size() - 2);
  std::vector<std::string_view> words;
  for (const std::string_view part : parts) {
    if (part == "Module" || part == "Cell") {
      tags.emplace(part, "default");
    } else {
      words.push_back(part);
    }
  }
  if (words.empty()) return {};
  if (words.size() < parts.size()) {
    AddLayers(words, &tags);
  } else {
    tags.emplace(Joined(words, 0, words.size()), "function");
  }
  return tags;
}

std::set<TrendTag> MonitorTags(std::string_view target) {
  std::set<TrendTag> tags;
  const std::vector<std::string_view> parts = Split(target, '.');
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!IsDigits(parts[i])) {
      tags.emplace(parts[i], "module");
    } else if (i > 0 && !IsDigits(parts[i - 1])) {
      tags.emplace(Joined(parts, i - 1, i + 1), "layer");
    }
  }
  return tags;
}

}  // namespace msprobe
