// Which stack a file or a program belongs to, and which stacks build on others.
#pragma once

#include <string_view>
#include <vector>

#include "config/settings.h"

namespace msprobe {

struct StackKind {
  ConfigDialect dialect = ConfigDialect::kUnknown;
  std::string_view name = {};
  ConfigDialect base = ConfigDialect::kUnknown;  // whose names it has, too
  bool base_defaults = false;
};

/// Null for those that build on none.
const StackKind* FindStack(ConfigDialect dialect);

/// The dialect of the arguments of this program: "axolotl.cli.train", "pretrain_gpt.py"; kUnknown.
ConfigDialect DialectOfProgram(std::string_view program);

/// A command of a stack that starts its training by itself: "swift"; kUnknown.
ConfigDialect DialectOfCommand(std::string_view command);

/// By a key that only one of them has; kUnknown.
ConfigDialect DialectOfKeys(const std::vector<Setting>& settings);

/// The more special one of what the keys of a file and the program that reads it say.
ConfigDialect Refined(ConfigDialect by_keys, ConfigDialect by_program);

}  // namespace msprobe
