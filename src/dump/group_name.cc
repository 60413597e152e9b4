#include "dump/group_name.h"

#include <array>

#include "base/text.h"

namespace msprobe {
namespace {

std::string_view TextOf(const JsonValue& leaf) {
  const JsonValue* type = leaf.Find("type");
  const JsonValue* value = leaf.Find("value");
  const bool is_text = type && type->IsString() && type->Text() == "str" && value && value->IsString();
  return is_text ? value->Text() : std::string_view();
}

}  // namespace

bool IsReductionText(std::string_view text) {
  static constexpr std::array<std::string_view, 5> kReductions{"sum", "prod", "max", "min", "avg"};
  for (const std::string_view name : kReductions) {
    if (text == name) return true;
  }
  return false;
}

const JsonValue* AttributeOf(const JsonValue& op, std::string_view name) {
  const JsonValue* all = op.Find("attributes");
  const JsonValue* found = all && all->IsObject() ? all->Find(name) : nullptr;
  return found && found->IsObject() ? found : nullptr;
}

std::string GroupNameOf(const JsonValue& op) {
  std::string_view name;
  const JsonValue* kwargs = op.Find("input_kwargs");
  if (const JsonValue* group = kwargs ? kwargs->Find("group") : nullptr) name = TextOf(*group);
  if (const JsonValue* group = AttributeOf(op, "group")) name = TextOf(*group);
  const JsonValue* args = op.Find("input_args");
  if (name.empty() && args && args->IsArray()) {
    for (const JsonValue& arg : args->Items()) {
      if (!IsReductionText(TextOf(arg))) name = TextOf(arg).empty() ? name : TextOf(arg);
    }
  }
  return EndsWith(name, "_world_group") ? std::string() : std::string(name);
}

}  // namespace msprobe
