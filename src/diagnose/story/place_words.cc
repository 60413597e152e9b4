#include "diagnose/story/place_words.h"

#include "base/text.h"

namespace msprobe {

std::string Ranks(const Words& say, const std::vector<int>& ranks) {
  std::string list;
  size_t runs = 0;
  for (size_t i = 0, end = 0; i < ranks.size(); i = end, ++runs) {
    if (runs == kMostListed) {
      list += say({", ... ({} in all)", ", ...（共 {} 个）"}, ranks.size());
      break;
    }
    while (end < ranks.size() && ranks[end] - ranks[i] == static_cast<int>(end - i)) ++end;
    if (end - i < 3) end = i + 1;
    list += (i ? ", " : "") + std::to_string(ranks[i]);
    if (end - i > 1) list += "-" + std::to_string(ranks[end - 1]);
  }
  return (ranks.size() == 1 || say.chinese() ? "rank " : "ranks ") + list;
}

std::string ModuleText(const Words& say, const std::string& module, const std::string& module_class) {
  if (!IsDigits(module.substr(0, module.find(' ')))) return module;
  if (module_class.empty()) return say({"module {}", "模块 {}"}, module);
  return say({"module {} ({})", "模块 {}（{}）"}, module, module_class);
}

std::string Subject(const Words& say, const StoryOrigin& o) {
  std::string place = o.module.empty() ? o.op : ModuleText(say, o.module, o.module_class);
  if (o.recomputed) place += say({" (recomputation)", "（重计算）"});
  return place;
}

std::string RunPlace(const Words& say, const StoryOrigin& o) {
  std::vector<std::string> parts;
  if (!o.ranks.empty()) parts.push_back(Ranks(say, o.ranks));
  if (o.step >= 0) parts.push_back(fmt::format("step {}", o.step));
  return say.Join(parts);
}

std::string Where(const Words& say, const StoryOrigin& o) {
  const std::string run = RunPlace(say, o);
  return run.empty() ? Subject(say, o) : say.Join({run, Subject(say, o)});
}

}  // namespace msprobe
