#include "match/name_mapping.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "ops/module_prefix.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

/// Byte where the direction of a name starts (its dot included), or npos: ".forward.", ".backward.",
/// ".parameters_grad.", also without the last dot at the end of the name.
size_t DirectionAt(std::string_view name) {
  size_t best = std::string_view::npos;
  for (const std::string_view word : {".forward", ".backward", ".parameters_grad"}) {
    for (size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
      const size_t end = at + word.size();
      if (end == name.size() || name[end] == '.') {
        best = std::min(best, at);
        break;
      }
    }
  }
  return best;
}

std::string MappedCell(std::string_view cell, const std::vector<std::pair<std::string, std::string>>& cells,
                       const std::unordered_map<std::string_view, std::string_view>& exact) {
  if (const auto it = exact.find(cell); it != exact.end()) return std::string(it->second);
  std::string out(cell);
  for (const auto& [target, golden] : cells) {
    if (const size_t at = out.find(target); at != std::string::npos) out.replace(at, target.size(), golden);
  }
  return out;
}

/// Where PyTorch may have what MindSpore has under a prefix, the likeliest first.
std::vector<std::string_view> PrefixesFor(std::string_view prefix) {
  if (prefix == "Functional" || prefix == "Mint") return {"Torch", "Functional", "Tensor"};
  if (prefix == "MintFunctional") return {"Functional", "Torch", "Tensor"};
  if (prefix == "Tensor") return {"Tensor", "Torch", "Functional"};
  if (prefix == "Distributed" || prefix == "MintDistributed") return {"Distributed"};
  return {};
}

/// How often each API was called forward.
std::unordered_map<std::string_view, uint32_t> CountCalls(const std::vector<std::string_view>& names) {
  std::unordered_map<std::string_view, uint32_t> out;
  for (const std::string_view name : names) {
    uint32_t& calls = out[ApiOfOp(name)];
    calls += EndsWith(name, ".forward");
  }
  return out;
}

/// Gives each API of the target one of the golden run; no two get the same.
class ApiChoice {
 public:
  ApiChoice(const std::vector<std::string_view>& target, const std::vector<std::string_view>& golden)
      : calls_(CountCalls(target)), golden_calls_(CountCalls(golden)) {
    std::vector<std::string_view> apis;
    std::unordered_set<std::string_view> seen;
    for (const std::string_view name : target) {
      if (seen.insert(ApiOfOp(name)).second) apis.push_back(ApiOfOp(name));
    }
    // As often called and in the likeliest place first: what is left then takes what is left.
    for (int pass = 0; pass < 3; ++pass) {
      for (const std::string_view api : apis) {
        if (!chosen_.count(api)) Choose(api, pass);
      }
    }
  }

  std::string_view Of(std::string_view api) const {
    const auto it = chosen_.find(api);
    return it == chosen_.end() ? api : std::string_view(it->second);
  }

 private:
  void Choose(std::string_view api, int pass) {
    const size_t dot = api.find('.');
    if (dot == std::string_view::npos) return;
    const std::string_view function = api.substr(dot + 1);
    std::vector<std::string_view> names = {function};
    // Looked up only when PyTorch's run called nothing of MindSpore's own name.
    for (const std::string_view alias : FunctionAliases(function)) names.push_back(alias);
    const std::vector<std::string_view> prefixes = PrefixesFor(api.substr(0, dot));
    for (const std::string_view name : names) {
      for (const std::string_view prefix : prefixes) {
        std::string candidate = std::string(prefix) + "." + std::string(name);
        const auto it = golden_calls_.find(candidate);
        if (it == golden_calls_.end() || taken_.count(candidate)) continue;
        if (pass == 0 && it->second != calls_.at(api)) continue;
        if (pass == 1 && prefix != prefixes.front()) continue;
        taken_.insert(candidate);
        chosen_.emplace(api, std::move(candidate));
        return;
      }
    }
  }

  const std::unordered_map<std::string_view, uint32_t> calls_, golden_calls_;
  std::unordered_map<std::string_view, std::string> chosen_;
  std::unordered_set<std::string> taken_;
};

/// Path and class of a module op: "Module.a.b.Linear.forward.0" -> "Module.a.b", "Linear". False for other ops.
bool SplitModule(std::string_view name, std::string_view* path, std::string_view* type) {
  if (!StartsWith(name, "Module.") && !StartsWith(name, "Cell.")) return false;
  const size_t end = DirectionAt(name);
  if (end == std::string_view::npos) return false;
  const std::string_view base = name.substr(0, end);
  const size_t dot = base.rfind('.');
  if (dot == std::string_view::npos) return false;
  *path = base.substr(0, dot);
  *type = base.substr(dot + 1);
  return true;
}

}  // namespace

std::string_view ApiOfOp(std::string_view op) {
  const size_t first = op.find('.');
  if (first == std::string_view::npos) return op;
  return op.substr(0, op.find('.', first + 1));
}

std::vector<std::string_view> FunctionAliases(std::string_view function) {
  std::vector<std::string_view> out;
  for (const OpTwin& twin : OpTwins()) {
    if (twin.mindspore == function) out.push_back(twin.torch);
  }
  return out;
}

std::vector<std::string> MapCells(const std::vector<std::string_view>& target,
                                  const std::vector<std::pair<std::string, std::string>>& cells) {
  std::unordered_map<std::string_view, std::string_view> exact;
  for (const auto& [target_cell, golden_cell] : cells) exact.emplace(target_cell, golden_cell);
  std::vector<std::string> out;
  out.reserve(target.size());
  for (const std::string_view name : target) {
    const size_t from = name.find('.'), to = DirectionAt(name);
    if (cells.empty() || from == std::string_view::npos || to == std::string_view::npos || to <= from) {
      out.emplace_back(name);
      continue;
    }
    std::string mapped(name.substr(0, from + 1));
    mapped += MappedCell(name.substr(from + 1, to - from - 1), cells, exact);
    mapped += name.substr(to);
    out.push_back(std::move(mapped));
  }
  return out;
}

std::vector<std::string> MapModules(const std::vector<std::string_view>& target,
                                    const std::vector<std::string_view>& golden, std::string_view golden_prefix) {
  std::unordered_map<std::string_view, std::string_view> types;  // class of a path; "" where there are several
  std::string_view path, type;
  for (const std::string_view name : golden) {
    if (!SplitModule(name, &path, &type)) continue;
    const auto [it, fresh] = types.emplace(path, type);
    if (!fresh && it->second != type) it->second = std::string_view();
  }
  std::vector<std::string> out;
  out.reserve(target.size());
  for (const std::string_view name : target) {
    if (!SplitModule(name, &path, &type)) {
      out.emplace_back(name);
      continue;
    }
    std::string mapped = std::string(golden_prefix) + std::string(path.substr(path.find('.')));
    const auto it = types.find(mapped);
    mapped += '.';
    mapped += it == types.end() || it->second.empty() ? type : it->second;
    mapped += name.substr(path.size() + 1 + type.size());
    out.push_back(std::move(mapped));
  }
  return out;
}

std::vector<std::string> MapApis(const std::vector<std::string_view>& target,
                                 const std::vector<std::string_view>& golden, const std::vector<ApiRule>& rules) {
  std::unordered_map<std::string_view, std::string_view> by_rule;
  for (const ApiRule& rule : rules) by_rule.emplace(rule.target, rule.golden);
  const ApiChoice choice(target, golden);
  std::vector<std::string> out;
  out.reserve(target.size());
  for (const std::string_view name : target) {
    const std::string_view api = ApiOfOp(name);
    const auto it = by_rule.find(api);
    out.push_back(std::string(it == by_rule.end() ? choice.Of(api) : it->second) +
                  std::string(name.substr(api.size())));
  }
  return out;
}

void LinkApiItems(const std::vector<std::string_view>& target, const std::vector<ApiRule>& rules, MatchPlan* plan) {
  std::unordered_map<std::string_view, const ApiRule*> by_api;
  for (const ApiRule& rule : rules) by_api.emplace(rule.target, &rule);
  for (uint32_t i = 0; i < target.size(); ++i) {
    const auto it = by_api.find(ApiOfOp(target[i]));
    if (it == by_api.end() || plan->golden_of[i] == kNoOp) continue;
    OpLinks& links = plan->links[i];
    const auto add = [&](const std::string& place, const std::vector<std::pair<std::string, std::string>>& pairs) {
      for (const auto& [target_item, golden_item] : pairs)
        links.links.push_back({place + target_item, place + golden_item, plan->golden_of[i]});
    };
    add(".input.", it->second->inputs);
    add(".output.", it->second->outputs);
    add(".parameters.", it->second->parameters);
    add(".", it->second->gradients);
  }
}

namespace {

/// The first name of a module.
std::string_view FirstModule(const OpList& ops) {
  for (size_t i = 0; i < ops.size(); ++i) {
    if (IsModuleName(ops.NameAt(i))) return ops.NameAt(i);
  }
  return {};
}

constexpr size_t kVoters = 64;     // modules that are asked for a prefix
constexpr double kMost = 0.6;      // of them that have to agree
constexpr double kOwnNames = 0.5;  // of the modules that may have a partner by name where a prefix is looked for
constexpr std::string_view kWrappers[] = {"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"};

/// "Module.layers.0.mlp.FeedForward.forward.0" in parts.
struct ModuleName {
  std::string_view root, path, type, rest;
};

ModuleName SplitModule(std::string_view name) {
  ModuleName out;
  const std::string_view base = ParseOpName(name).base;
  const size_t first = base.find('.'), last = base.rfind('.');
  if (first == std::string_view::npos || last == first) return out;  // the model itself has no path
  out.root = base.substr(0, first);
  out.path = base.substr(first + 1, last - first - 1);
  out.type = base.substr(last + 1);
  out.rest = name.substr(base.size());
  return out;
}

/// Without the names that compilers and shardings put between.
std::string Unwrapped(std::string_view path) {
  std::string out;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (std::ranges::find(kWrappers, part) == std::end(kWrappers)) out.append(out.empty() ? "" : ".").append(part);
    begin = end + 1;
  }
  return out;
}

/// The modules of a run by their unwrapped paths, in the order of their first call.
struct Modules {
  struct Place {
    std::string path;
    std::vector<std::string> types;
  };
  std::unordered_map<std::string, Place> places;
  std::vector<std::string> paths;

  explicit Modules(const OpList& ops) {
    std::unordered_set<std::string_view> seen;
    for (size_t i = 0; i < ops.size(); ++i) {
      const std::string_view name = ops.NameAt(i);
      if (!IsModuleName(name) || !seen.insert(ParseOpName(name).base).second) continue;
      const ModuleName module = SplitModule(name);
      if (module.path.empty()) continue;
      const std::string path = Unwrapped(module.path);
      Place& place = places[path];
      if (place.types.empty()) paths.push_back(path), place.path = module.path;
      if (std::ranges::find(place.types, module.type) == place.types.end()) place.types.emplace_back(module.type);
    }
  }
};

/// What most paths of `longer` have in front of those of `shorter`, with the dot behind it; "" for nothing.
std::string PrefixOf(const Modules& longer, const Modules& shorter) {
  std::unordered_map<std::string, size_t> votes;
  const size_t step = std::max<size_t>(1, shorter.paths.size() / kVoters);
  size_t voters = 0;
  for (size_t i = 0; i < shorter.paths.size(); i += step, ++voters) {
    const std::string tail = "." + shorter.paths[i];
    for (const std::string& path : longer.paths) {
      if (EndsWith(path, tail)) ++votes[path.substr(0, path.size() - tail.size() + 1)];
    }
  }
  const auto most = std::ranges::max_element(votes, {}, &std::pair<const std::string, size_t>::second);
  const bool agreed = most != votes.end() && static_cast<double>(most->second) >= kMost * static_cast<double>(voters);
  return agreed ? most->first : std::string();
}

bool SameNames(const OpList& ops, const DumpFile& other) {
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string_view name = ops.NameAt(i);
    if (IsModuleName(name) && EndsWith(name, ".forward.0") && !other.FindOp(name)) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> NamesWithoutChunk(const DumpFile& target, const DumpFile& golden) {
  std::vector<std::string> out;
  const std::string_view first = FirstModule(target.ops()), other = FirstModule(golden.ops());
  if (first == other) return out;  // most runs are named alike, and are not looked through
  if (first.substr(0, first.find('.')) != other.substr(0, other.find('.'))) return out;  // of two frameworks
  const auto prefix = [](const OpList& ops) {
    return ModulePrefix(ops.size(), [&](size_t i) { return ops.NameAt(i); });
  };
  const std::string_view from = prefix(target.ops()), to = prefix(golden.ops());
  if (from == to || from.empty() || to.empty()) return out;
  for (size_t i = 0; i < target.ops().size(); ++i) out.push_back(WithPrefix(target.ops().NameAt(i), from, to));
  return out;
}

std::vector<std::string> NamesOfWrapped(const DumpFile& target, const DumpFile& golden) {
  std::vector<std::string> out;
  if (SameNames(target.ops(), golden)) return out;
  const Modules mine(target.ops()), theirs(golden.ops());
  const auto named = std::ranges::count_if(mine.paths, [&](const std::string& p) { return theirs.places.contains(p); });
  const auto fewest = static_cast<double>(std::min(mine.paths.size(), theirs.paths.size()));
  std::string off, on;  // prefixes that only the target, or the golden run, has
  if (static_cast<double>(named) <= kOwnNames * fewest) {
    off = PrefixOf(mine, theirs);
    if (off.empty()) on = PrefixOf(theirs, mine);
  }
  bool changed = false;
  for (size_t i = 0; i < target.ops().size(); ++i) {
    const std::string_view name = target.ops().NameAt(i);
    out.emplace_back(name);
    const ModuleName module = IsModuleName(name) ? SplitModule(name) : ModuleName();
    if (module.path.empty() || golden.FindOp(name)) continue;
    std::string path = Unwrapped(module.path);
    if (!off.empty() && StartsWith(path, off)) path.erase(0, off.size());
    const auto place = theirs.places.find(on + path);
    if (place == theirs.places.end()) continue;
    const std::vector<std::string>& types = place->second.types;
    const bool same = std::ranges::find(types, module.type) != types.end();
    std::string there = std::string(module.root) + "." + place->second.path + "." +
                        (same ? std::string(module.type) : types.front()) + std::string(module.rest);
    changed = changed || there != name;
    out.back() = std::move(there);
  }
  if (!changed) out.clear();
  return out;
}

}  // namespace msprobe
