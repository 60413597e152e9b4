#include "config/python_values.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>

#include "base/text.h"

namespace msprobe {
namespace {

constexpr int kDeepestKept = 64;

}  // namespace

namespace python {
namespace {

constexpr size_t kMostRepeated = 4096;
constexpr double kMostExact = 9e15;

/// Modules whose members are constants of a library.
constexpr std::array<std::string_view, 12> kLibraries{"torch", "nn",  "np",   "jnp",    "F",    "optim",
                                                      "ms",    "jax", "mint", "mstype", "math", "mindspore"};

}  // namespace

ConfigValue Open(std::string_view text) { return ConfigValue::Of("$(" + std::string(text) + ")"); }

bool IsOpenText(const ConfigValue& value) { return value.IsText() && StartsWith(value.text, "$("); }

ConfigValue ListOf(std::vector<ConfigValue> items) {
  ConfigValue out;
  out.kind = ConfigValue::Kind::kList;
  out.items = std::move(items);
  return out;
}

bool Whole(const ConfigValue& value) { return value.kind == ConfigValue::Kind::kInt; }

std::optional<double> NumberOf(const ConfigValue& value) {
  if (value.kind == ConfigValue::Kind::kBool) return value.flag ? 1 : 0;
  return value.kind == ConfigValue::Kind::kInt || value.kind == ConfigValue::Kind::kFloat ? value.AsNumber()
                                                                                          : std::nullopt;
}

ConfigValue Numeric(double value, bool whole) {
  if (whole && std::fabs(value) < kMostExact) return ConfigValue::Of(static_cast<int64_t>(value));
  return ConfigValue::Of(value);
}

std::optional<bool> Truthy(const ConfigValue& value) {
  if (IsOpenText(value)) return std::nullopt;
  if (value.IsNull()) return false;
  if (const auto number = NumberOf(value)) return *number != 0;
  if (value.IsText()) return !value.text.empty();
  return value.IsList() ? !value.items.empty() : !value.members.empty();
}

const ConfigValue* MemberOf(const ConfigValue& map, std::string_view name) {
  for (auto at = map.members.rbegin(); at != map.members.rend(); ++at) {
    if (at->first == name) return &at->second;
  }
  return nullptr;
}

bool StandsForCall(std::string_view name) {
  for (const std::string_view one :
       {"run.Config", "run.Partial", "fdl.Config", "fdl.Partial", "partial", "functools.partial", "Partial"}) {
    if (name == one) return true;
  }
  return false;
}

/// A class, or a constant of a library.
bool IsConstant(std::string_view name) {
  const size_t dot = name.rfind('.');
  const std::string_view last = name.substr(dot == std::string_view::npos ? 0 : dot + 1);
  if (!last.empty() && std::isupper(static_cast<unsigned char>(last[0]))) return true;
  const std::string_view first = name.substr(0, name.find('.'));
  return dot != std::string_view::npos && std::find(kLibraries.begin(), kLibraries.end(), first) != kLibraries.end();
}

ConfigValue Repeated(const ConfigValue& list, int64_t times) {
  ConfigValue out = ListOf({});
  if (list.items.empty() || times <= 0) return out;
  const size_t size = SizeOf(list);
  if (size > kMostRepeated || static_cast<uint64_t>(times) > kMostRepeated / size) return Open("list");
  for (int64_t i = 0; i < times; ++i) out.items.insert(out.items.end(), list.items.begin(), list.items.end());
  return out;
}

ConfigValue Item(const ConfigValue& value, const ConfigValue& index) {
  if (value.IsMap() && index.IsText()) {
    const ConfigValue* member = MemberOf(value, index.text);
    return member ? ConfigValue(*member) : Open(index.text);
  }
  if (!value.IsList() || !Whole(index)) return Open("item");
  const int64_t size = static_cast<int64_t>(value.items.size());
  const int64_t at = index.integer < 0 ? index.integer + size : index.integer;
  return at >= 0 && at < size ? value.items[static_cast<size_t>(at)] : Open("item");
}

ConfigValue Called(const std::string& name, ConfigValue given) {
  if (name == "dict" || EndsWith(name, "ConfigDict") || EndsWith(name, "EasyDict") || EndsWith(name, "AttributeDict") ||
      EndsWith(name, "AttrDict") || EndsWith(name, "SimpleNamespace") || name == "Namespace")
    return given;
  const ConfigValue* first = given.members.empty() ? nullptr : &given.members[0].second;
  const auto number = first ? NumberOf(*first) : std::nullopt;
  if (name == "int" || name == "round" || name == "float") {
    if (!number) {
      const ConfigValue typed =
          first && first->IsText() && !IsOpenText(*first) ? PythonScalar(first->text) : Open(name);
      return typed;
    }
    if (name == "float") return ConfigValue::Of(*number);
    return Numeric(name == "int" ? std::trunc(*number) : std::nearbyint(*number), true);
  }
  if ((name == "max" || name == "min") && given.members.size() == 2) {
    const auto other = NumberOf(given.members[1].second);
    if (!number || !other) return Open(name);
    return (name == "max") == (*number >= *other) ? *first : given.members[1].second;
  }
  if ((name == "tuple" || name == "list") && first && first->IsList()) return *first;
  if ((name == "str" || name == "bool") && first && !IsOpenValue(*first)) {
    return name == "str" ? ConfigValue::Of(first->Shown()) : ConfigValue::Of(Truthy(*first).value_or(false));
  }
  // A field of a dataclass is what it is by default.
  if (name == "field" || EndsWith(name, ".field") || EndsWith(name, "Option") || name == "Field") {
    const ConfigValue* preset = MemberOf(given, "default");
    if (!preset && !(preset = MemberOf(given, "default_factory"))) preset = name == "field" ? nullptr : first;
    return preset ? *preset : Open(name);
  }
  if (StandsForCall(name) && first && first->IsText() && given.members[0].first == "0") {
    const std::string called = IsOpenText(*first) ? first->text.substr(2, first->text.size() - 3) : first->text;
    given.members.erase(given.members.begin());
    for (ConfigMember& member : given.members) {
      if (IsDigits(member.first) && member.first.size() < 6) member.first = std::to_string(std::stoi(member.first) - 1);
    }
    given.members.insert(given.members.begin(), {std::string(kPythonCall), ConfigValue::Of(called)});
    return given;
  }
  given.members.insert(given.members.begin(), {std::string(kPythonCall), ConfigValue::Of(name)});
  return given;
}

}  // namespace python

size_t SizeOf(const ConfigValue& value, int depth) {  // NOLINT(misc-no-recursion): kDeepestKept
  if (depth > kDeepestKept) return SIZE_MAX;
  size_t out = 1 + value.text.size() / 32;
  const auto add = [&](const ConfigValue& part) {
    const size_t size = SizeOf(part, depth + 1);
    out = size > SIZE_MAX - out ? SIZE_MAX : out + size;
  };
  for (const ConfigValue& item : value.items) add(item);
  for (const ConfigMember& member : value.members) add(member.second);
  return out;
}

bool IsOpenValue(const ConfigValue& value) {  // NOLINT(misc-no-recursion): as deep as an expression
  if (python::IsOpenText(value)) return true;
  const auto open_member = [](const ConfigMember& member) { return IsOpenValue(member.second); };
  return std::any_of(value.items.begin(), value.items.end(), IsOpenValue) ||
         std::any_of(value.members.begin(), value.members.end(), open_member);
}

}  // namespace msprobe
