#include "cli/launch/reference_program.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "base/message.h"
#include "base/text.h"

namespace msprobe {
namespace {

using Program = std::vector<std::string>;

/// Of launchers, Megatron-LM, torchtitan, DeepSpeed and scripts: as they stand behind dashes and sections, `_` for `-`.
constexpr std::array<std::string_view, 22> kSizes{"nproc_per_node",
                                                  "num_processes",
                                                  "num_gpus",
                                                  "tensor_model_parallel_size",
                                                  "pipeline_model_parallel_size",
                                                  "context_parallel_size",
                                                  "expert_model_parallel_size",
                                                  "expert_tensor_parallel_size",
                                                  "tensor_parallel_size",
                                                  "pipeline_parallel_size",
                                                  "expert_parallel_size",
                                                  "tensor_parallel_degree",
                                                  "pipeline_parallel_degree",
                                                  "context_parallel_degree",
                                                  "expert_parallel_degree",
                                                  "data_parallel_shard_degree",
                                                  "data_parallel_replicate_degree",
                                                  "tp",
                                                  "pp",
                                                  "cp",
                                                  "ep",
                                                  "dp"};

/// "--parallelism.tensor-parallel-degree" -> "tensor_parallel_degree"
std::string PlainName(std::string_view name) {
  while (!name.empty() && name.front() == '-') name.remove_prefix(1);
  name = name.substr(name.rfind('.') == std::string_view::npos ? 0 : name.rfind('.') + 1);
  std::string out(name);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

/// The new value of a name, null where it keeps its own.
const std::string* NewValue(std::string_view name, const std::map<std::string, std::string>& values) {
  const auto found = values.find(PlainName(name));
  return found == values.end() ? nullptr : &found->second;
}

/// Each name=value of an argument, also of several with commas between them.
bool ChangePairs(const std::map<std::string, std::string>& values, std::string* argument) {
  std::string out;
  bool changed = false;
  for (const std::string_view pair : Split(*argument, ',')) {
    const size_t equals = pair.find('=');
    const std::string* value = equals == pair.npos ? nullptr : NewValue(pair.substr(0, equals), values);
    if (!out.empty()) out += ',';
    changed = changed || value != nullptr;
    out += value == nullptr ? std::string(pair) : std::string(pair.substr(0, equals + 1)) + *value;
  }
  if (changed) *argument = out;
  return changed;
}

}  // namespace

StatusOr<Program> ShellWords(const std::string& text) {
  Program words;
  std::string word;
  bool open = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else if (c == '\\' && quote == '"' && i + 1 < text.size())
        word += text[++i];
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c, open = true;
    } else if (c == '\\' && i + 1 < text.size()) {
      word += text[++i], open = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (open) words.push_back(word);
      word.clear(), open = false;
    } else {
      word += c, open = true;
    }
  }
  if (quote != 0) return UsageError(Msg("a quote is not closed in {}", text));
  if (open) words.push_back(word);
  return words;
}

StatusOr<Program> ReferenceProgram(const Program& program, const std::string& given,
                                   const std::vector<std::string>& set) {
  if (!given.empty()) return ShellWords(given);
  std::map<std::string, std::string> values;
  for (const std::string_view name : kSizes) values.emplace(name, "1");
  for (const std::string& pair : set) {
    const size_t equals = pair.find('=');
    if (equals == pair.npos) return UsageError(Msg("--set is '{}'; expected NAME=VALUE, such as tp=1", pair));
    values[PlainName(pair.substr(0, equals))] = pair.substr(equals + 1);
  }
  Program out = program;
  bool changed = false;
  for (size_t i = 1; i < out.size(); ++i) {
    if (out[i].find('=') != std::string::npos) {
      changed = ChangePairs(values, &out[i]) || changed;
    } else if (StartsWith(out[i], "-") && i + 1 < out.size()) {
      const std::string* value = NewValue(out[i], values);
      if (value == nullptr) continue;
      out[++i] = *value;
      changed = true;
    }
  }
  if (changed) return out;
  return UsageError(
      Msg("nothing in your command says how many ranks it has: give the reference as --reference 'COMMAND'"));
}

}  // namespace msprobe
