#include "ops/op_name.h"

#include <utility>

#include "base/text.h"

namespace msprobe {
namespace {

constexpr std::string_view kForwardText = "forward";
constexpr std::string_view kBackwardText = "backward";
constexpr std::string_view kParameterGradText = "parameters_grad";

/// Splits "a.b.c" into "a.b" and "c".
std::string_view CutLast(std::string_view* s) {
  const size_t dot = s->rfind('.');
  const std::string_view last = dot == std::string_view::npos ? *s : s->substr(dot + 1);
  *s = dot == std::string_view::npos ? std::string_view() : s->substr(0, dot);
  return last;
}

}  // namespace

NameParts ParseOpName(std::string_view name) {
  NameParts out;
  out.full = out.base = name;
  std::string_view rest = name;
  const std::string_view last = CutLast(&rest);
  std::string_view before_rest = rest;
  const std::string_view before = CutLast(&before_rest);
  if (last == kParameterGradText || before == kParameterGradText) {
    out.direction = OpDirection::kParameterGrad;
    out.number_last = true;
    out.base = last == kParameterGradText ? rest : before_rest;
    if (last != kParameterGradText) out.number = last;
    return out;
  }
  // "forward" is looked for first, as it also wins in names like "x.forward.backward".
  for (const auto& [text, direction] :
       {std::pair(kForwardText, OpDirection::kForward), std::pair(kBackwardText, OpDirection::kBackward)}) {
    if (last != text && before != text) continue;
    out.direction = direction;
    out.number_last = last != text;
    const std::string_view number = out.number_last ? last : before;
    if (IsDigits(number)) {
      out.number = number;
      out.base = before_rest;
    } else {
      out.base = out.number_last ? before_rest : rest;
    }
    return out;
  }
  return out;
}

std::string_view ApiOrClassOf(std::string_view op_name) {
  const std::string_view base = ParseOpName(op_name).base;
  const size_t dot = base.rfind('.');
  return dot == std::string_view::npos ? base : base.substr(dot + 1);
}

std::string_view WithoutRankSuffix(std::string_view function) {
  constexpr std::string_view kRank = "_rank";
  const size_t at = function.rfind(kRank);
  if (at == std::string_view::npos || at == 0 || !IsDigits(function.substr(at + kRank.size()))) return function;
  return function.substr(0, at);
}

bool IsModuleName(std::string_view op_name) { return op_name.starts_with("Module.") || op_name.starts_with("Cell."); }

}  // namespace msprobe
