#include "config/stack/stacks.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace msprobe {
namespace {

constexpr StackKind kStacks[] = {
#define MSP_STACK(id, name, base, defaults) {ConfigDialect::id, name, ConfigDialect::base, defaults},
#include "config/stack/stacks.def"
#undef MSP_STACK
};

struct Sign {
  std::string_view word;
  ConfigDialect dialect;
};

constexpr Sign kPrograms[] = {
#define MSP_PROGRAM(word, dialect) {word, ConfigDialect::dialect},
#include "config/stack/stacks.def"
#undef MSP_PROGRAM
};

constexpr Sign kCommands[] = {
#define MSP_COMMAND(word, dialect) {word, ConfigDialect::dialect},
#include "config/stack/stacks.def"
#undef MSP_COMMAND
};

constexpr Sign kPackages[] = {
#define MSP_PACKAGE(word, dialect) {word, ConfigDialect::dialect},
#include "config/stack/stacks.def"
#undef MSP_PACKAGE
};

struct OptionOf {
  std::string_view program, option;
  ConfigDialect dialect;
};

constexpr OptionOf kOptions[] = {
#define MSP_OPTION(program, option, dialect) {program, option, ConfigDialect::dialect},
#include "config/stack/stacks.def"
#undef MSP_OPTION
};
constexpr int kFewestOptions = 4;

struct KeySigns {
  ConfigDialect dialect;
  std::string_view own, shared, foreign;  // with blanks between
};

constexpr KeySigns kKeySigns[] = {
#define MSP_SIGNS(dialect, own, shared, foreign) {ConfigDialect::dialect, own, shared, foreign},
#include "config/stack/stack_signs.def"
#undef MSP_SIGNS
};

bool SamePlain(char a, char b) { return a == b || (a == '-' && b == '_') || (a == '_' && b == '-'); }

bool SamePlain(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return SamePlain(x, y); });
}

bool Tells(std::string_view sign, std::string_view key) {
  if (StartsWith(sign, ".")) return EndsWith(key, sign);
  return EndsWith(sign, ".") ? StartsWith(key, sign) : SamePlain(key, sign);
}

/// Behind the begin of a word of a path or a module: "ctrl.train" is none of trl's.
bool NamesPart(std::string_view program, std::string_view sign) {
  for (size_t at = program.find(sign); at != std::string_view::npos; at = program.find(sign, at + 1)) {
    const char before = at > 0 ? program[at - 1] : '/';
    if (before == '/' || before == '.' || before == '_' || before == '-' || before == ' ') return true;
  }
  return false;
}

constexpr int kMostBelow = 3;  // keys below one section that count
constexpr int kSureKey = 2, kSure = 4, kSureOfOne = 5;

struct Evidence {
  int keys = 0, all = 0;  // of keys that it alone has; of these twice and of hints
};

Evidence EvidenceOf(const KeySigns& signs, std::span<const std::string_view> keys) {
  const auto count = [&](std::string_view sign) {
    const auto tells = [&](std::string_view key) { return Tells(sign, key); };
    const int64_t most = StartsWith(sign, ".") || EndsWith(sign, ".") ? kMostBelow : 1;
    return static_cast<int>(std::min<int64_t>(std::count_if(keys.begin(), keys.end(), tells), most));
  };
  Evidence out;
  for (const std::string_view sign : Split(signs.own, ' ')) out.keys += count(sign);
  out.all = kSureKey * out.keys;
  const auto foreign = Split(signs.foreign, ' ');
  const auto there = [&](std::string_view sign) { return !sign.empty() && count(sign) > 0; };
  if (out.keys == 0 || std::any_of(foreign.begin(), foreign.end(), there)) return {};
  for (const std::string_view sign : Split(signs.shared, ' ')) out.all += count(sign) > 0;
  return out;
}

/// What others have files of, and keys in their own: no evidence against them.
bool IsPart(ConfigDialect dialect) {
  return dialect == ConfigDialect::kDeepSpeed || dialect == ConfigDialect::kPeft ||
         dialect == ConfigDialect::kLightning;
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
  if (EndsWith(program, ".py")) program.remove_suffix(3);
  for (const Sign& sign : kPrograms) {
    if (NamesPart(program, sign.word)) return sign.dialect;
  }
  return ConfigDialect::kUnknown;
}

bool ImportsStack(std::string_view program, ConfigDialect dialect) {
  for (const Sign& sign : kPackages) {
    if (sign.dialect != dialect) continue;
    for (const std::string_view before : {"from ", "import "}) {
      const std::string word = std::string(before) + std::string(sign.word);
      for (size_t at = program.find(word); at != std::string_view::npos; at = program.find(word, at + 1)) {
        const char after = at + word.size() < program.size() ? program[at + word.size()] : '\n';
        if (after == '.' || after == ' ' || after == '\n' || after == '\r' || after == ',') return true;
      }
    }
  }
  return false;
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

ConfigDialect DialectOfKeys(std::span<const std::string_view> keys, bool* doubtful) {
  std::vector<std::pair<Evidence, ConfigDialect>> found;
  for (const KeySigns& signs : kKeySigns) {
    const Evidence evidence = EvidenceOf(signs, keys);
    if (evidence.keys > 0) found.emplace_back(evidence, signs.dialect);
  }
  std::stable_partition(found.begin(), found.end(), [](const auto& one) { return !IsPart(one.second); });
  for (const auto& [evidence, dialect] : found) {
    if (evidence.all < (evidence.keys == 1 ? kSureOfOne : kSure)) continue;
    // Twice as much as for the next.
    bool sure = true;
    for (const auto& [other, rival] : found) {
      const bool counts = rival != dialect && (IsPart(dialect) || !IsPart(rival));
      sure = sure && !(counts && 2 * other.all > evidence.all);
    }
    if (sure) return dialect;
    if (doubtful) *doubtful = true;
  }
  return ConfigDialect::kUnknown;
}

ConfigDialect Refined(ConfigDialect by_keys, ConfigDialect by_program) {
  const StackKind* stack = FindStack(by_program);
  const bool refines = by_keys == ConfigDialect::kUnknown || (stack && stack->base == by_keys);
  return refines ? by_program : by_keys;
}

}  // namespace msprobe
