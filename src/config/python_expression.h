// What an expression of a Python file is, as far as the file itself says it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "config/python_values.h"

namespace msprobe {

/// What a name ("lr", "args.lr") stands for; null where that is not known.
using PythonNames = std::function<const ConfigValue*(std::string_view)>;

/// Numbers, texts, lists, dicts, arithmetic, conditions and names that are known. What only a run knows is the text
/// "$(...)", for which IsOpen() holds. Names of classes and of constants of libraries are texts: torch.bfloat16.
ConfigValue PythonValue(std::string_view text, const PythonNames& names);

}  // namespace msprobe
