// The rules of the checklist about versions of packages.
#include <algorithm>
#include <array>
#include <charconv>

#include "checks/rule_tests.h"

namespace msprobe::rule_tests {
namespace {

struct VersionChange {
  std::string_view package, first, en, zh;
};

constexpr VersionChange kChanges[] = {
#define MSP_VERSION(package, first, en, zh) {package, first, en, zh},
#include "checks/version_rules.def"
#undef MSP_VERSION
};

/// Packages whose versions of one side have to agree up to the second number.
constexpr std::pair<std::string_view, std::string_view> kBelongTogether[] = {{"torch", "torch-npu"}};

/// "2.1.0.post3+cpu": 2, 1. -1 for what is no number.
std::array<int, 2> Numbers(std::string_view version) {
  std::array<int, 2> out{-1, -1};
  const char *at = version.data(), *const end = version.data() + version.size();
  for (int& number : out) {
    const auto [stop, error] = std::from_chars(at, end, number);
    if (error != std::errc()) break;
    at = stop;
    if (at == end || *at != '.') break;
    ++at;
  }
  return out;
}

/// Names of packages are written with either sign.
std::string PackageOf(const EffectiveRun& run, std::string_view name) {
  std::string other(name);
  std::replace(other.begin(), other.end(), '-', '_');
  const std::string found = run.Package(name);
  return found.empty() ? run.Package(other) : found;
}

bool Belong(const EffectiveRun& run) {
  for (const auto& [first, second] : kBelongTogether) {
    const std::string a = PackageOf(run, first), b = PackageOf(run, second);
    if (!a.empty() && !b.empty() && Numbers(a) != Numbers(b)) return false;
  }
  return true;
}

}  // namespace

CheckVerdict KnownVersions(const CheckInput& input) {
  if (!Belong(*input.target) || (input.golden && !Belong(*input.golden))) return CheckVerdict::kFail;
  if (!input.golden) return CheckVerdict::kSkip;
  bool known = false;
  for (const VersionChange& change : kChanges) {
    const std::string a = PackageOf(*input.target, change.package), b = PackageOf(*input.golden, change.package);
    if (a.empty() || b.empty()) continue;
    known = true;
    const auto first = Numbers(change.first);
    if ((Numbers(a) < first) != (Numbers(b) < first)) return CheckVerdict::kWarn;
  }
  return known ? CheckVerdict::kPass : CheckVerdict::kAsk;
}

CheckVerdict SameVersions(const CheckInput& input) {
  if (!input.golden) return CheckVerdict::kAsk;
  bool known = false;
  for (const std::string_view name :
       {"mindspore", "mindformers", "torch", "torch-npu", "transformers", "megatron-core", "deepspeed", "accelerate",
        "peft", "flash-attn", "apex", "transformer-engine", "verl", "vllm", "trl", "tokenizers", "datasets", "numpy"}) {
    const std::string a = PackageOf(*input.target, name), b = PackageOf(*input.golden, name);
    if (a.empty() || b.empty()) continue;
    known = true;
    if (Numbers(a) != Numbers(b)) return CheckVerdict::kWarn;
  }
  return known ? CheckVerdict::kPass : CheckVerdict::kAsk;
}

}  // namespace msprobe::rule_tests
