#include "graph/overflow.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <string>

#include "graph/node_graph.h"
#include "graph/value.h"

namespace msprobe {
namespace {

constexpr double kNormGrowth = 100;

/// Ops whose arguments may hold uninitialised memory; -1: no position is excused.
struct Rule {
  std::string_view api;
  int input;
  std::string_view keyword;
  int output;
};
constexpr std::array<Rule, 10> kRules{{{"torch.empty", -1, "", 0},
                                       {"torch.empty_like", -1, "", 0},
                                       {"torch.empty_strided", -1, "", 0},
                                       {"distributed.recv", 0, "tensor", -1},
                                       {"distributed.all_gather", 0, "", -1},
                                       {"distributed.reduce_scatter", 0, "output", -1},
                                       {"distributed._reduce_scatter_base", 0, "", -1},
                                       {"distributed.all_gather_into_tensor", 0, "", -1},
                                       {"distributed.reduce_scatter_tensor", 0, "", -1},
                                       {"tensor.masked_fill_", 0, "", -1}}};

bool IsBadTensor(const JsonValue& v) {
  for (std::string_view key : {"Max", "Min", "Mean"}) {
    const JsonValue* stat = Find(v, key);
    if (stat && Value::Of(*stat).IsInfOrNan()) return true;
  }
  return false;
}

// Depth is bounded by the parser.
bool IsBad(const JsonValue& v) {
  if (v.IsArray()) return std::any_of(v.Begin(), v.End(), IsBad);
  return v.IsObject() && IsBadTensor(v);
}

template <typename F>
void ForEach(const JsonValue* v, F&& visit) {
  if (v && v->IsArray()) {
    int i = 0;
    for (const JsonValue& e : v->GetArray()) visit(i++, std::string_view(), e);
  } else if (v && v->IsObject()) {
    for (const auto& m : v->GetObject()) visit(-1, Text(m.name), m.value);
  }
}

bool AnyBad(const JsonValue* v) {
  bool bad = false;
  ForEach(v, [&](int, std::string_view, const JsonValue& e) { bad = bad || IsBad(e); });
  return bad;
}

void LargestNorm(const JsonValue* v, std::optional<double>* best) {
  ForEach(v, [&](int, std::string_view, const JsonValue& e) {
    const JsonValue* type = Find(e, "type");
    const JsonValue* norm = Find(e, "Norm");
    if (!type || !type->IsString() || Text(*type) != "torch.Tensor" || !norm || !norm->IsNumber()) return;
    const double d = norm->GetDouble();
    if (!std::isnan(d) && (!*best || d > **best)) *best = d;
  });
}

bool Excused(std::string_view name, const JsonValue* args, const JsonValue* kwargs, const JsonValue* output) {
  std::string api(Segment(name, 0));
  if (name.find('.') != std::string_view::npos) {
    api += '.';
    api += Segment(name, 1);
  }
  std::transform(api.begin(), api.end(), api.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto rule = std::find_if(kRules.begin(), kRules.end(), [&](const Rule& r) { return r.api == api; });
  if (rule == kRules.end()) return false;
  bool ok = true;
  const auto check = [&](const JsonValue* v, int position, std::string_view keyword) {
    ForEach(v, [&](int i, std::string_view key, const JsonValue& e) {
      if (IsBadTensor(e) && !(i >= 0 ? i == position : key == keyword)) ok = false;
    });
  };
  if (rule->input >= 0) check(args, rule->input, "");
  if (!rule->keyword.empty()) check(kwargs, -1, rule->keyword);
  if (rule->output >= 0) check(output, rule->output, "");
  return ok;
}

const JsonValue* ArrayOf(const JsonValue* v) { return v && v->IsArray() ? v : nullptr; }

}  // namespace

std::string_view OverflowName(Overflow level) {
  static constexpr std::array<std::string_view, 4> kNames{"", "medium", "high", "critical"};
  return kNames[static_cast<size_t>(level)];
}

Overflow ClassifyOverflow(std::string_view name, const JsonValue& op) {
  const JsonValue* args = Find(op, "input_args");
  if (!args) args = Find(op, "input");
  args = ArrayOf(args);
  const JsonValue* kwargs = Find(op, "input_kwargs");
  const JsonValue* output = ArrayOf(Find(op, "output"));
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
