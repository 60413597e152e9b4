#include "jobs/configuration/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "base/text.h"

namespace msprobe {
namespace {

constexpr std::array<std::string_view, 13> kSecretWords = {
    "password", "passwd",  "passphrase", "secret", "secrets", "credential",   "credentials",
    "apikey",   "authkey", "privatekey", "cookie", "bearer",  "authorization"};
// Of the names that end in "key" those of secrets; "rollout_key" or "num_key_value_heads" is none.
constexpr std::array<std::string_view, 8> kKeyOwners = {"api",  "access",  "private", "secret",
                                                        "auth", "license", "ssh",     "signing"};
constexpr std::array<std::string_view, 12> kKnownShapes = {"hf_",    "sk-",   "ghp_",  "gho_", "ghs_", "github_pat_",
                                                           "glpat-", "xoxb-", "xoxp-", "AKIA", "eyJ",  "-----BEGIN"};
constexpr std::array<std::string_view, 45> kVariablePrefixes = {
    "HCCL_",       "LCCL_", "NCCL_",    "GLOO_",     "ASCEND",      "ACL_",     "ACLNN_",    "ATB_",
    "CANN_",       "NPU_",  "CUDA_",    "CUBLAS",    "CUDNN_",      "NVTE_",    "NVIDIA_",   "TORCH",
    "PYTORCH",     "MS_",   "MSPROBE_", "MINDSPORE", "GLOG_",       "RUN_MODE", "DEVICE_",   "SERVER_",
    "RANK_",       "OMP_",  "MKL_",     "OPENBLAS_", "KMP_",        "GOMP_",    "XLA_",      "TF_",
    "TRITON_",     "VLLM_", "SGLANG_",  "RAY_",      "DEEPSPEED_",  "DS_",      "MEGATRON_", "TRANSFORMERS_",
    "ACCELERATE_", "FSDP_", "TE_",      "FLASH_",    "INF_NAN_MODE"};
constexpr std::array<std::string_view, 20> kVariables = {"RANK",
                                                         "WORLD_SIZE",
                                                         "LOCAL_RANK",
                                                         "LOCAL_WORLD_SIZE",
                                                         "NODE_RANK",
                                                         "NNODES",
                                                         "GROUP_RANK",
                                                         "MASTER_PORT",
                                                         "PYTHONHASHSEED",
                                                         "TASK_QUEUE_ENABLE",
                                                         "COMBINED_ENABLE",
                                                         "CPU_AFFINITY_CONF",
                                                         "MULTI_STREAM_MEMORY_REUSE",
                                                         "HOST_CACHE_CAPACITY",
                                                         "CLOSE_MATMUL_K_SHIFT",
                                                         "ENABLE_PRINT_HOST",
                                                         "TOKENIZERS_PARALLELISM",
                                                         "HF_HUB_OFFLINE",
                                                         "HF_DATASETS_OFFLINE",
                                                         "DATA_PARALLEL_SIZE"};

std::vector<std::string> WordsOf(std::string_view name) {
  std::vector<std::string> out(1);
  char before = '\0';
  for (const char c : name) {
    const bool letter = std::isalnum(static_cast<unsigned char>(c)) != 0;
    const bool camel = std::isupper(static_cast<unsigned char>(c)) && std::islower(static_cast<unsigned char>(before));
    if ((!letter || camel) && !out.back().empty()) out.emplace_back();
    if (letter) out.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    before = c;
  }
  if (out.back().empty() && out.size() > 1) out.pop_back();
  return out;
}

/// A long text without words: letters of both cases and digits, or hexadecimal, without a path's or a sentence's marks.
bool LooksRandom(std::string_view value) {
  if (value.size() < 20) return false;
  int digits = 0, upper = 0, lower = 0;
  for (const char c : value) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isdigit(u))
      ++digits;
    else if (std::isupper(u))
      ++upper;
    else if (std::islower(u))
      ++lower;
    else if (c != '-' && c != '_' && c != '=' && c != '+')
      return false;
  }
  return digits >= 3 && upper + lower >= 3;
}

/// scheme://user:password@host
bool HasPassword(std::string_view value) {
  const size_t scheme = value.find("://");
  if (scheme == std::string_view::npos) return false;
  const std::string_view host = value.substr(scheme + 3, value.find_first_of("/ ?", scheme + 3) - scheme - 3);
  const size_t at = host.find('@');
  return at != std::string_view::npos && host.find(':') < at;
}

bool HasKnownShape(std::string_view value) {
  for (const std::string_view shape : kKnownShapes) {
    for (size_t at = value.find(shape); at != std::string_view::npos; at = value.find(shape, at + 1)) {
      const bool begins = at == 0 || !std::isalnum(static_cast<unsigned char>(value[at - 1]));
      if (!begins) continue;
      if (shape.substr(0, 5) == "-----") return true;
      size_t end = at + shape.size();
      while (end < value.size() &&
             (std::isalnum(static_cast<unsigned char>(value[end])) || value[end] == '_' || value[end] == '-')) {
        ++end;
      }
      if (end - at >= 20) return true;
    }
  }
  return false;
}

}  // namespace

bool IsSecret(std::string_view name, std::string_view value) {
  if (HasPassword(value) || HasKnownShape(value)) return true;
  const std::vector<std::string> words = WordsOf(name);
  for (size_t i = 0; i < words.size(); ++i) {
    if (std::find(kSecretWords.begin(), kSecretWords.end(), words[i]) != kSecretWords.end()) return true;
    if (words[i] == "key" && i > 0 &&
        std::find(kKeyOwners.begin(), kKeyOwners.end(), words[i - 1]) != kKeyOwners.end()) {
      return true;
    }
  }
  const bool may_be =
      words.back() == "token" || words.back() == "key" || words.back() == "auth" || words.back() == "pat";
  return may_be && LooksRandom(value);
}

bool IsTrainingVariable(std::string_view name) {
  return std::find(kVariables.begin(), kVariables.end(), name) != kVariables.end() ||
         std::any_of(kVariablePrefixes.begin(), kVariablePrefixes.end(),
                     [&](std::string_view prefix) { return StartsWith(name, prefix); });
}

}  // namespace msprobe
