#include "config/stacks.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"

namespace msprobe {
namespace {

constexpr StackKind kStacks[] = {
#define MSP_STACK(id, name, base, defaults) {ConfigDialect::id, name, ConfigDialect::base, defaults},
#include "config/stacks.def"
#undef MSP_STACK
};

struct Sign {
  std::string_view word;
  ConfigDialect dialect;
};

constexpr Sign kPrograms[] = {
#define MSP_PROGRAM(word, dialect) {word, ConfigDialect::dialect},
#include "config/stacks.def"
#undef MSP_PROGRAM
};

constexpr Sign kCommands[] = {
#define MSP_COMMAND(word, dialect) {word, ConfigDialect::dialect},
#include "config/stacks.def"
#undef MSP_COMMAND
};

struct OptionOf {
  std::string_view program, option;
  ConfigDialect dialect;
};

constexpr OptionOf kOptions[] = {
#define MSP_OPTION(program, option, dialect) {program, option, ConfigDialect::dialect},
#include "config/stacks.def"
#undef MSP_OPTION
};
constexpr int kFewestOptions = 4;

constexpr Sign kKeys[] = {
#define MSP_KEY(word, dialect) {word, ConfigDialect::dialect},
#include "config/stacks.def"
#undef MSP_KEY
};

bool Tells(std::string_view sign, std::string_view key) {
  if (StartsWith(sign, ".")) return EndsWith(key, sign);
  return EndsWith(sign, ".") ? StartsWith(key, sign) : key == sign;
}

}  // namespace

std::string_view NameOf(ConfigDialect dialect) {
  switch (dialect) {
    case ConfigDialect::kUnknown: return "unknown";
    case ConfigDialect::kMegatron: return "Megatron";
    case ConfigDialect::kMindFormers: return "MindFormers";
    case ConfigDialect::kHfModel: return "Hugging Face model";
    case ConfigDialect::kHfTrainer: return "Hugging Face Trainer";
    case ConfigDialect::kDeepSpeed: return "DeepSpeed";
    case ConfigDialect::kVerl: return "verl";
    case ConfigDialect::kTokenizer: return "tokenizer";
    case ConfigDialect::kTorchLog: return "PyTorch optimizer";
    default: break;
  }
  const StackKind* stack = FindStack(dialect);
  return stack ? stack->name : "unknown";
}

const StackKind* FindStack(ConfigDialect dialect) {
  const auto* found =
      std::find_if(std::begin(kStacks), std::end(kStacks), [&](const StackKind& s) { return s.dialect == dialect; });
  return found == std::end(kStacks) ? nullptr : found;
}

ConfigDialect DialectOfProgram(std::string_view program) {
  for (const Sign& sign : kPrograms) {
    if (Contains(program, sign.word)) return sign.dialect;
  }
  return ConfigDialect::kUnknown;
}

ConfigDialect DialectOfCommand(std::string_view command) {
  for (const Sign& sign : kCommands) {
    if (BaseName(command) == sign.word) return sign.dialect;
  }
  return ConfigDialect::kUnknown;
}

ConfigDialect DialectOfOptions(std::string_view program, std::span<const std::string_view> options) {
  int found = 0;
  for (const OptionOf& one : kOptions) {
    const bool there = std::find(options.begin(), options.end(), one.option) != options.end();
    if (BaseName(program) != one.program || !there) continue;
    if (++found == kFewestOptions) return one.dialect;
  }
  return ConfigDialect::kUnknown;
}

ConfigDialect DialectOfKeys(std::span<const std::string_view> keys) {
  for (const Sign& sign : kKeys) {
    const auto tells = [&](std::string_view key) { return Tells(sign.word, key); };
    if (std::any_of(keys.begin(), keys.end(), tells)) return sign.dialect;
  }
  return ConfigDialect::kUnknown;
}

ConfigDialect Refined(ConfigDialect by_keys, ConfigDialect by_program) {
  const StackKind* stack = FindStack(by_program);
  const bool refines = by_keys == ConfigDialect::kUnknown || (stack && stack->base == by_keys);
  return refines ? by_program : by_keys;
}

}  // namespace msprobe
