#include "jobs/configuration/checkpoint_settings.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "config/read_configuration.h"
#include "weights/open_checkpoint.h"

namespace msprobe {
namespace {

constexpr int kMostLevels = 8;

/// A plain value, or what stands for an object of one: the value of an enum, the name of a type.
ConfigValue SettingOf(const PtValue& value, int level) {  // NOLINT(misc-no-recursion): kMostLevels
  using Kind = PtValue::Kind;
  ConfigValue out;
  switch (value.kind) {
    case Kind::kBool: return ConfigValue::Of(value.i != 0);
    case Kind::kInt: return ConfigValue::Of(value.i);
    case Kind::kFloat: return ConfigValue::Of(value.d);
    case Kind::kText: return ConfigValue::Of(value.text);
    case Kind::kList:
    case Kind::kTuple:
      out.kind = ConfigValue::Kind::kList;
      for (const PtValue& item : value.items) {
        if (level < kMostLevels) out.items.push_back(SettingOf(item, level + 1));
      }
      return out;
    case Kind::kOther: {
      const bool made = !value.items.empty() && value.items[0].kind == Kind::kTuple;
      const bool of_one = made && value.items[0].items.size() == 1 && level < kMostLevels;
      if (of_one) return SettingOf(value.items[0].items[0], level + 1);
      if (!made || value.items[0].items.empty()) return ConfigValue::Of(value.text);
      return out;
    }
    default: return out;
  }
}

/// The attributes of an object, or the members of a dict.
const PtValue* MembersOf(const PtValue& value) {  // NOLINT(misc-no-recursion): each is part of the one before
  if (value.kind == PtValue::Kind::kDict) return &value;
  if (value.kind == PtValue::Kind::kOther && value.items.size() > 1) return MembersOf(value.items[1]);
  if (value.kind == PtValue::Kind::kTuple && !value.items.empty()) return MembersOf(value.items[0]);
  return nullptr;
}

bool AddArguments(const PtValue& args, const std::string& path, ConfigDialect dialect, Configuration* out) {
  const PtValue* members = MembersOf(args);
  if (!members || members->items.empty()) return false;
  ConfigSource source;
  source.path = path;
  source.dialect = dialect;
  for (size_t i = 0; i + 1 < members->items.size(); i += 2) {
    const PtValue &key = members->items[i], &value = members->items[i + 1];
    if (key.kind != PtValue::Kind::kText || key.text.starts_with('_') || value.kind == PtValue::Kind::kTensor) continue;
    source.settings.push_back({std::string(key.text), SettingOf(value, 0), path});
  }
  out->sources.push_back(std::move(source));
  return true;
}

/// TrainingArguments that transformers' Trainer pickles beside the weights.
StatusOr<bool> AddTrainer(const std::string& directory, Configuration* out) {
  const std::string path = JoinPath(directory, "training_args.bin");
  bool found = false;
  if (IsRegularFile(path)) {
    MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
    MSP_ASSIGN_OR_RETURN(const PtFile args, PtFile::Parse(file.text(), path, PtObjects::kShown));
    found = AddArguments(args.value(), path, ConfigDialect::kHfTrainer, out);
  }
  const std::string state = JoinPath(directory, "trainer_state.json");
  if (!IsRegularFile(state)) return found;
  Configuration read;
  MSP_RETURN_IF_ERROR(AddFile(state, &read));
  for (ConfigSource& source : read.sources) {
    source.dialect = ConfigDialect::kHfTrainer;
    std::erase_if(source.settings, [](const Setting& s) { return s.key.starts_with("log_history"); });
    // What is said twice counts as TrainingArguments have it, so the state comes first.
    out->sources.insert(out->sources.end() - (found ? 1 : 0), std::move(source));
  }
  return true;
}

}  // namespace

bool HoldsConfigurationOnly(const std::string& path) {
  Configuration read;
  return IsDirectory(path) && !OpenCheckpoint(path).ok() && AddFile(path, &read).ok();
}

bool MayBeCheckpoint(const std::string& path) {
  constexpr std::array<std::string_view, 6> kEndings{".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".npz"};
  return IsDirectory(path) ||
         std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view ending) { return path.ends_with(ending); });
}

Status AddCheckpointSettings(const std::string& path, Configuration* out) {
  const std::string directory = IsDirectory(path) ? path : std::string(DirName(path));
  bool found = false;
  if (IsRegularFile(JoinPath(directory, "config.json"))) {
    MSP_RETURN_IF_ERROR(AddFile(directory, out));  // that, and a script beside it
    found = true;
  }
  MSP_ASSIGN_OR_RETURN(const bool trainer, AddTrainer(directory, out));
  if (found || trainer) return OkStatus();
  auto checkpoint = OpenCheckpoint(path);
  const bool of_run = IsDirectory(path) && (!checkpoint.ok() || !checkpoint->arguments);
  if (of_run) {
    const Status read = AddFile(path, out);
    if (read.ok()) return OkStatus();
    // What is wrong with its files says more than that it is no checkpoint.
    if (!checkpoint.ok()) return read;
  }
  if (!checkpoint.ok()) return checkpoint.status();
  const size_t file = static_cast<size_t>(checkpoint->arguments_file);
  if (checkpoint->arguments &&
      AddArguments(*checkpoint->arguments, checkpoint->files[file].path, ConfigDialect::kMegatron, out))
    return OkStatus();
  return BadInput(
      Msg("{} holds no arguments of a training: give the script, yaml or log of the training as well", path));
}

}  // namespace msprobe
