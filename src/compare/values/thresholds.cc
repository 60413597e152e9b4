#include "compare/values/thresholds.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "base/message.h"
#include "base/text.h"
#include "base/yaml.h"
#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

struct Key {
  const char* section;
  const char* name;
  double Thresholds::*value;
  double least, most;
  const char* meaning;
};

constexpr double kLarge = 1e300;

constexpr Key kKeys[] = {
    {"statistics", "input_agrees", &Thresholds::input_agrees, 0, kLarge,
     "inputs agree when their NormRelativeErr is below this"},
    {"statistics", "output_wrong", &Thresholds::output_wrong, 0, kLarge,
     "error: inputs agree and the NormRelativeErr of an output is above this"},
    {"statistics", "growth", &Thresholds::growth, 0, kLarge,
     "warning: the NormRelativeErr of an output is so many times that of the inputs"},
    {"statistics", "growth_from_zero", &Thresholds::growth_from_zero, 0, kLarge,
     "warning: inputs are equal and the NormRelativeErr of an output is above this"},
    {"tensor", "ratio_agrees", &Thresholds::ratio_agrees, 0, 1,
     "inputs agree when their One Thousandth Err Ratio is above this"},
    {"tensor", "ratio_wrong", &Thresholds::ratio_wrong, 0, 1,
     "error: inputs agree and the One Thousandth Err Ratio of an output is below this"},
    {"tensor", "cosine_agrees", &Thresholds::cosine_agrees, -1, 1, "inputs agree when their Cosine is above this"},
    {"tensor", "cosine_drop", &Thresholds::cosine_drop, 0, 2,
     "warning: inputs agree and the Cosine of an output is lower by more than this"},
    {"highlight", "huge", &Thresholds::huge, 0, kLarge, "red: Max diff or MaxAbsErr is above this"},
    {"highlight", "red_ratio_agrees", &Thresholds::red_ratio_agrees, 0, 1,
     "red: the One Thousandth Err Ratio of the inputs is above this"},
    {"highlight", "red_ratio_wrong", &Thresholds::red_ratio_wrong, 0, 1, "and that of the output below this"},
    {"highlight", "red_relative", &Thresholds::red_relative, 0, kLarge,
     "red: the MaxRelativeErr of an output is above this"},
    {"highlight", "yellow_growth", &Thresholds::yellow_growth, 1, kLarge,
     "yellow: Max diff or MaxAbsErr of an output is so many times that of the inputs"},
    {"highlight", "yellow_growth_above", &Thresholds::yellow_growth_above, 0, kLarge, "where both are above this"},
    {"highlight", "yellow_ratio_drop", &Thresholds::yellow_ratio_drop, 0, 1,
     "yellow: the One Thousandth Err Ratio of an output is lower by more than this"},
    {"highlight", "yellow_relative_agrees", &Thresholds::yellow_relative_agrees, 0, kLarge,
     "yellow: the MaxRelativeErr of the inputs is below this"},
    {"highlight", "yellow_relative", &Thresholds::yellow_relative, 0, kLarge, "and that of the output above this"},
    {"highlight", "yellow_cosine_drop", &Thresholds::yellow_cosine_drop, 0, 2,
     "yellow: the Cosine of an output is lower by more than this"},
    {"diff_analyze", "most_relative", &Thresholds::most_relative, 0, kLarge,
     "-da: an op is different when the relative error of a statistic of an output is above this"},
    {"ruler", "tolerance_float32", &Thresholds::tolerance_float32, 0, 1,
     "relative error that is round-off once both runs have rounded; also float64"},
    {"ruler", "tolerance_float16", &Thresholds::tolerance_float16, 0, 1, "the same for float16"},
    {"ruler", "tolerance_bfloat16", &Thresholds::tolerance_bfloat16, 0, 1, "the same for bfloat16"},
    {"ruler", "tolerance_float8", &Thresholds::tolerance_float8, 0, 1, "the same for float8"},
    {"ruler", "stands_out", &Thresholds::stands_out, 1, kLarge,
     "an op is to blame when its output is so many times further apart than its inputs"},
    {"ruler", "bug", &Thresholds::bug, 1, kLarge,
     "amid rounding, a difference is called a bug so many times beyond round-off"},
    {"ruler", "stands_out_later", &Thresholds::stands_out_later, 1, kLarge,
     "after a difference that came from outside, an op is blamed when it exceeds round-off this many times"},
    {"ruler", "louder", &Thresholds::louder, 1, kLarge,
     "an input stands out when it differs this many times as much as everything accumulated before it"},
};

Status Unknown(const std::string& path, int line, std::string_view what, std::string_view word,
               const std::vector<std::string_view>& known) {
  return BadInput(Msg("{} line {}: \"{}\" is not a {}: did you mean \"{}\"?", path, line, word.substr(0, 64), what,
                      NearestWord(word, known)));
}

Status ReadNumber(const std::string& path, const Key& key, const YamlNode& node, Thresholds* out) {
  char* end = nullptr;
  const double v = node.IsText() && !node.text.empty() ? std::strtod(node.text.c_str(), &end) : NAN;
  if (end && *end == '\0' && v >= key.least && v <= key.most) {
    out->*key.value = v;
    return OkStatus();
  }
  const std::string most = key.most == kLarge ? "up" : fmt::format("to {}", key.most);
  return BadInput(Msg("{} line {}: {}.{} is {}: a number from {} {} is allowed", path, node.line, key.section, key.name,
                      node.IsText() ? Message("\"" + node.text.substr(0, 64) + "\"") : KnownText("not a number"),
                      key.least, most));
}

Status ReadSection(const std::string& path, const std::string& section, const YamlNode& node, Thresholds* out) {
  std::vector<std::string_view> known;
  for (const Key& key : kKeys) {
    if (section == key.section) known.push_back(key.name);
  }
  if (node.IsNull()) return OkStatus();
  if (!node.IsMap()) return BadInput(Msg("{} line {}: {} must hold \"key: number\" lines", path, node.line, section));
  for (const auto& member : node.members) {
    const std::string& name = member.first;
    const YamlNode& value = member.second;
    const auto key = std::find_if(std::begin(kKeys), std::end(kKeys),
                                  [&](const Key& k) { return section == k.section && name == k.name; });
    if (key == std::end(kKeys)) return Unknown(path, value.line, "threshold of " + section, name, known);
    MSP_RETURN_IF_ERROR(ReadNumber(path, *key, value, out));
  }
  return OkStatus();
}

Status ReadRules(const std::string& path, const YamlNode& node, Thresholds* out) {
  if (node.IsText() && node.text == "documented") return OkStatus();
  if (!node.IsText() || node.text != "code") {
    return BadInput(Msg("{} line {}: rules is \"{}\": documented or code is allowed", path, node.line,
                        node.IsText() ? Message(node.text.substr(0, 64)) : KnownText("no text")));
  }
  out->ratio_wrong = 0.1;
  return OkStatus();
}

}  // namespace

double Thresholds::ToleranceOf(DType t) const {
  const int digits = InfoOf(t).digits;
  if (digits == 0) return 0;
  if (digits >= InfoOf(DType::kFloat32).digits) return tolerance_float32;
  if (digits >= InfoOf(DType::kFloat16).digits) return tolerance_float16;
  return digits >= InfoOf(DType::kBFloat16).digits ? tolerance_bfloat16 : tolerance_float8;
}

const Thresholds& DefaultThresholds() {
  static const Thresholds thresholds;
  return thresholds;
}

StatusOr<Thresholds> ReadThresholds(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const YamlNode root, ReadYamlFile(path));
  if (!root.IsMap())
    return BadInput(Msg("{} holds no thresholds: msprobe compare --print_thresholds shows the form", path));
  Thresholds out;
  if (const YamlNode* rules = root.Find("rules")) MSP_RETURN_IF_ERROR(ReadRules(path, *rules, &out));
  for (const auto& member : root.members) {
    const std::string& section = member.first;
    const YamlNode& node = member.second;
    if (section == "rules") continue;
    const bool known =
        std::any_of(std::begin(kKeys), std::end(kKeys), [&](const Key& k) { return section == k.section; });
    if (!known)
      return Unknown(path, node.line, "section", section,
                     {"rules", "statistics", "tensor", "highlight", "diff_analyze", "ruler"});
    MSP_RETURN_IF_ERROR(ReadSection(path, section, node, &out));
  }
  return out;
}

std::string ThresholdsYaml(const Thresholds& thresholds) {
  std::string out =
      "# Thresholds of msprobe compare. Keys may be left out; their value is then that given here.\n"
      "# rules: the numbers of mindstudio-probe's documentation, or those of its code (tensor.ratio_wrong 0.1).\n"
      "rules: documented\n";
  std::string_view section;
  for (const Key& key : kKeys) {
    if (section != key.section) out += fmt::format("{}:\n", key.section);
    section = key.section;
    out += fmt::format("  # {}\n  {}: {}\n", key.meaning, key.name, thresholds.*key.value);
  }
  return out;
}

}  // namespace msprobe
