// Which stack a file or a program belongs to, and which stacks build on others.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace msprobe {

/// Who reads a file, and so by which names and defaults.
enum class ConfigDialect : uint8_t {
  kUnknown,
  kMegatron,     // arguments of Megatron-LM and MindSpeed
  kMindFormers,  // yaml of MindFormers
  kHfModel,      // config.json of a model of Hugging Face
  kHfTrainer,    // TrainingArguments
  kDeepSpeed,    // its json
  kVerl,         // hydra configuration of verl
  kTokenizer,    // files of a tokenizer
  kTorchLog,     // the optimizer that PyTorch prints, with its groups as groups.N.name
#define MSP_STACK(id, name, base, defaults) id,
#include "config/stack/stacks.def"
#undef MSP_STACK
};
std::string_view NameOf(ConfigDialect dialect);

struct StackKind {
  ConfigDialect dialect = ConfigDialect::kUnknown;
  std::string_view name = {};
  ConfigDialect base = ConfigDialect::kUnknown;  // whose names it has, too
  bool base_defaults = false;
};

/// Null for those that build on none.
const StackKind* FindStack(ConfigDialect dialect);

/// The dialect of the arguments of this program: "axolotl.cli.train", "pretrain_gpt.py"; kUnknown.
ConfigDialect DialectOfProgram(std::string_view program);

/// Whether the text of a program imports what programs of the stack do.
bool ImportsStack(std::string_view program, ConfigDialect dialect);

/// A command of a stack that starts its training by itself: "swift"; kUnknown.
ConfigDialect DialectOfCommand(std::string_view command);

/// By several options that together only the program of a stack has, where its name is one that others have, too;
/// kUnknown.
ConfigDialect DialectOfOptions(std::string_view program, std::span<const std::string_view> options);

/// By several keys that only one of them has, twice as much as tells for any other; kUnknown below that, and `doubtful`
/// where several tell as much.
ConfigDialect DialectOfKeys(std::span<const std::string_view> keys, bool* doubtful = nullptr);

/// The more special one of what the keys of a file and the program that reads it say.
ConfigDialect Refined(ConfigDialect by_keys, ConfigDialect by_program);

}  // namespace msprobe
