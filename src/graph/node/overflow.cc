#include "graph/node/overflow.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <string>

#include "compare/values/stat_value.h"
#include "graph/tree/node_graph.h"
#include "ops/collective.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

constexpr double kNormGrowth = 100;

bool IsBadTensor(const JsonValue& v) {
  for (std::string_view key : {"Max", "Min", "Mean"}) {
    const JsonValue* stat = v.Find(key);
    if (stat && StatValue::Of(*stat).IsNanOrInf()) return true;
  }
  return false;
}

// Depth is bounded by the parser.
bool IsBad(const JsonValue& v) {
  if (v.IsArray()) return std::ranges::any_of(v.Items(), IsBad);
  return v.IsObject() && IsBadTensor(v);
}

template <typename F>
void ForEach(const JsonValue* v, F&& visit) {
  if (v && v->IsArray()) {
    int i = 0;
    for (const JsonValue& e : v->Items()) visit(i++, std::string_view(), e);
  } else if (v && v->IsObject()) {
    for (const auto& m : v->Members()) visit(-1, m.name, m.value);
  }
}

bool AnyBad(const JsonValue* v) {
  bool bad = false;
  ForEach(v, [&](int, std::string_view, const JsonValue& e) { bad = bad || IsBad(e); });
  return bad;
}

void LargestNorm(const JsonValue* v, std::optional<double>* best) {
  ForEach(v, [&](int, std::string_view, const JsonValue& e) {
    const JsonValue* type = e.Find("type");
    const JsonValue* norm = e.Find("Norm");
    if (!type || !type->IsString() || type->Text() != "torch.Tensor" || !norm || !norm->IsNumber()) return;
    const double d = norm->Number();
    if (!std::isnan(d) && (!*best || d > **best)) *best = d;
  });
}

/// Where the only bad values are those that mindstudio-probe excuses: the result of empty, the buffer of a
/// communication, the tensor that masked_fill_ fills.
bool Excused(std::string_view name, const JsonValue* args, const JsonValue* kwargs, const JsonValue* output) {
  const std::string_view space = Segment(name, 0), api = ApiOf(name);
  const auto only = [](const JsonValue* v, int position, std::string_view keyword) {
    bool ok = true;
    ForEach(v, [&](int i, std::string_view key, const JsonValue& e) {
      if (IsBadTensor(e) && !(i >= 0 ? i == position : key == keyword)) ok = false;
    });
    return ok;
  };
  if (space == "Distributed") {
    const Collective* call = FindCollective(api);
    return call && call->Has(op_trait::kExcused) && only(args, call->position, "") &&
           (!call->Has(op_trait::kExcusedByName) || only(kwargs, -1, call->keyword));
  }
  const OpTraits traits = TraitsOf(api);
  if (!traits.Has(op_trait::kExcused)) return false;
  if (space == "Torch" && traits.Has(op_trait::kUndefined)) return only(output, 0, "");
  return space == "Tensor" && ChangesArguments(api) && only(args, 0, "");
}

const JsonValue* ArrayOf(const JsonValue* v) { return v && v->IsArray() ? v : nullptr; }

}  // namespace

std::string_view OverflowName(Overflow level) {
  static constexpr std::array<std::string_view, 4> kNames{"", "medium", "high", "critical"};
  return kNames[static_cast<size_t>(level)];
}

Overflow ClassifyOverflow(std::string_view name, const JsonValue& op) {
  const JsonValue* args = op.Find("input_args");
  if (!args) args = op.Find("input");
  args = ArrayOf(args);
  const JsonValue* kwargs = op.Find("input_kwargs");
  const JsonValue* output = ArrayOf(op.Find("output"));
  const bool bad_in = AnyBad(args) || AnyBad(kwargs), bad_out = AnyBad(output);
  Overflow level = Overflow::kNone;
  if (bad_in || bad_out) {
    level = !bad_in ? Overflow::kCritical : bad_out ? Overflow::kHigh : Overflow::kMedium;
  } else {
    std::optional<double> in, out;
    LargestNorm(args, &in);
    LargestNorm(kwargs, &in);
    LargestNorm(output, &out);
    if (!in || !out || !(*in == 0 ? *out > kNormGrowth : *out / *in > kNormGrowth)) return Overflow::kNone;
    level = Overflow::kHigh;
  }
  return Excused(name, args, kwargs, output) ? Overflow::kNone : level;
}

}  // namespace msprobe
