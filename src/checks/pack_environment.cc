#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/text.h"
#include "checks/pack_compare.h"

namespace msprobe {
namespace {

/// A variable that changes results, as each kind of device calls it; "": it has none.
struct KnownVariable {
  std::string_view npu, npu_default, gpu, gpu_default;
};

constexpr std::array<KnownVariable, 6> kKnown = {{
    {"HCCL_DETERMINISTIC", "False", "NCCL_DETERMINISTIC", "False"},
    {"HCCL_ALGO", "None", "NCCL_ALGO", "None"},
    {"HCCL_INTRA_ROCE_ENABLE", "0", "", ""},
    {"HCCL_INTRA_PCIE_ENABLE", "1", "", ""},
    {"ASCEND_LAUNCH_BLOCKING", "0", "CUDA_LAUNCH_BLOCKING", "0"},
    {"ASCEND_RT_VISIBLE_DEVICES", "None", "CUDA_VISIBLE_DEVICES", "None"},
}};

/// Words in the names of variables that choose how a device or library computes. mindstudio-probe does not list them.
constexpr std::array<std::string_view, 13> kComputes = {"TF32",  "DETERMINISTIC", "PRECISION", "CUBLAS",  "CUDNN",
                                                        "NVTE_", "FLASH_ATT",     "OVERFLOW",  "INF_NAN", "INFNAN",
                                                        "CBWR",  "ALLOW_FP16",    "ALLOW_BF16"};

bool OnNpu(const std::vector<Setting>& environment) {
  for (const Setting& variable : environment) {
    if (Contains(variable.key, "ASCEND")) return true;
  }
  return false;
}

/// true, TRUE and 1 say the same.
std::string PlainValue(const ConfigValue& value) {
  if (const std::optional<bool> truth = value.AsBool()) return *truth ? "true" : "false";
  return value.Shown();
}

/// A default as mindstudio-probe types it.
SheetValue DefaultCell(std::string_view text) {
  if (text == "False") return SheetValue::Of(false);
  if (IsDigits(text)) return SheetValue::Of(static_cast<double>(text[0] - '0'));
  return SheetValue::Of(std::string(text));
}

struct FoundVariable {
  std::string name;
  SheetValue cell;
  std::string plain;
};

FoundVariable Look(const std::vector<Setting>& environment, std::string_view name, std::string_view otherwise) {
  for (const Setting& variable : environment) {
    if (variable.key == name) {
      return {std::string(name), SheetValue::Of(variable.value.Shown()), PlainValue(variable.value)};
    }
  }
  return {std::string(name), DefaultCell(otherwise), PlainValue(PythonScalar(otherwise))};
}

bool IsKnown(std::string_view name) {
  return std::ranges::any_of(kKnown, [&](const KnownVariable& k) { return k.npu == name || k.gpu == name; });
}

const Setting* FindVariable(const std::vector<Setting>& environment, std::string_view name) {
  const auto found = std::ranges::find_if(environment, [&](const Setting& s) { return s.key == name; });
  return found == environment.end() ? nullptr : &*found;
}

/// Rows of the variables that no table of devices knows and that choose how something computes.
void CompareOthers(const std::vector<Setting>& bench, const std::vector<Setting>& cmp, PackPart* out) {
  std::set<std::string_view> names;
  for (const auto* side : {&bench, &cmp}) {
    for (const Setting& variable : *side) {
      const auto in_name = [&](std::string_view word) { return Contains(variable.key, word); };
      if (!IsKnown(variable.key) && std::ranges::any_of(kComputes, in_name)) names.insert(variable.key);
    }
  }
  for (const std::string_view name : names) {
    const Setting *a = FindVariable(bench, name), *b = FindVariable(cmp, name);
    if (a && b && PlainValue(a->value) == PlainValue(b->value)) continue;
    const auto cell = [](const Setting* s) { return s ? SheetValue::Of(s->value.Shown()) : SheetValue{}; };
    const auto title = [&](const Setting* s, std::string_view only) {
      return SheetValue::Of(std::string(s ? name : only));
    };
    out->verdict = std::max(out->verdict, PackVerdict::kWarning);
    out->sheet.rows.push_back({title(a, "only cmp has this env"), title(b, "only bench has this env"), cell(a), cell(b),
                               SheetValue::Of(std::string("warning"))});
  }
}

}  // namespace

PackPart CompareEnvironment(const std::vector<Setting>& bench, const std::vector<Setting>& cmp) {
  PackPart out{{"env", {"bench_env_name", "cmp_env_name", "bench_value", "cmp_value", "level"}, {}}};
  const bool bench_npu = OnNpu(bench), cmp_npu = OnNpu(cmp);
  for (const KnownVariable& known : kKnown) {
    const std::string_view bench_name = bench_npu ? known.npu : known.gpu, cmp_name = cmp_npu ? known.npu : known.gpu;
    const FoundVariable a = Look(bench, bench_name, bench_npu ? known.npu_default : known.gpu_default),
                        b = Look(cmp, cmp_name, cmp_npu ? known.npu_default : known.gpu_default);
    if (bench_name.empty() && cmp_name.empty()) continue;
    if (bench_name.empty() || cmp_name.empty()) {
      const bool cmp_only = bench_name.empty();
      out.verdict = std::max(out.verdict, PackVerdict::kWarning);
      out.sheet.rows.push_back({SheetValue::Of(cmp_only ? std::string("only cmp has this env") : a.name),
                                SheetValue::Of(cmp_only ? b.name : std::string("only bench has this env")),
                                cmp_only ? SheetValue{} : a.cell, cmp_only ? b.cell : SheetValue{},
                                SheetValue::Of(std::string("warning"))});
    } else if (a.plain != b.plain) {
      out.verdict = PackVerdict::kError;
      out.sheet.rows.push_back(
          {SheetValue::Of(a.name), SheetValue::Of(b.name), a.cell, b.cell, SheetValue::Of(std::string("error"))});
    }
  }
  CompareOthers(bench, cmp, &out);
  return out;
}

}  // namespace msprobe
