// The parts of an op's name.
#pragma once

#include <cstdint>
#include <string_view>

namespace msprobe {

enum class OpDirection : uint8_t { kNone, kForward, kBackward, kParameterGrad };

/// "Functional.linear.3.backward" or "Module.fc.Linear.backward.3" -> base "Functional.linear" / "Module.fc.Linear",
/// backward, call number 3. `number` is empty when the name carries none. All parts point into the name.
struct NameParts {
  std::string_view full;
  std::string_view base;  // the whole name when the direction is kNone
  std::string_view number;
  OpDirection direction = OpDirection::kNone;
  bool number_last = false;  // modules: "backward.3"; APIs: "3.backward"
};

NameParts ParseOpName(std::string_view name);

/// "linear" of "Functional.linear.3.forward", "Linear" of "Module.fc.Linear.forward.0".
std::string_view ApiOrClassOf(std::string_view op_name);

/// "linear" of "Functional.linear.3.forward": what is between the first two dots, without looking for a direction.
inline std::string_view ApiOf(std::string_view op_name) {
  const size_t dot = op_name.find('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view rest = op_name.substr(dot + 1);
  return rest.substr(0, rest.find('.'));
}

/// "tanh" of "tanh_rank3": merged graphs name calls that ranks have beside those of the first so.
std::string_view WithoutRankSuffix(std::string_view function);

/// Of a module of PyTorch or a cell of MindSpore.
bool IsModuleName(std::string_view op_name);

}  // namespace msprobe
