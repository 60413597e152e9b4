// Where something is, in the words of both languages.
#pragma once

#include <string>
#include <vector>

#include "diagnose/story/phrases.h"

namespace msprobe {

inline constexpr size_t kMostListed = 8;  // ranks, origins and hand-overs that a line or a text names

/// "rank 2", "ranks 0-3, 8"
std::string Ranks(const Words& say, const std::vector<int>& ranks);
/// "layers.1.mlp.linear_fc1"; of a part of nn.Sequential, whose name is a number, "module 0 (Linear)".
std::string ModuleText(const Words& say, const std::string& module, const std::string& module_class = {});
/// "layers.1.mlp.linear_fc1", or the op where no module is known.
std::string Subject(const Words& say, const StoryOrigin& o);
/// "rank 2, step 0"; "" where neither is known.
std::string RunPlace(const Words& say, const StoryOrigin& o);
/// "rank 2, step 0, layers.1.mlp.linear_fc1"
std::string Where(const Words& say, const StoryOrigin& o);

}  // namespace msprobe
