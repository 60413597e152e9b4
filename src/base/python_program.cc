#include "base/python_program.h"

#include "base/text.h"

namespace msprobe {

std::string JoinPrograms(const ProgramModules& modules, std::string_view main) {
  std::string out = "import sys, types\n";
  for (const auto& [name, program] : modules) {
    const std::string quoted = "'" + std::string(name) + "'";
    out.append("module = types.ModuleType(" + quoted + ")\nsys.modules[" + quoted + "] = module\nexec(");
    AppendPyStrRepr(out, program);
    out.append(", module.__dict__)\n");
  }
  return out.append(main);
}

}  // namespace msprobe
