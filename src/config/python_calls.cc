#include "config/python_calls.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/text.h"
#include "config/python_values.h"

namespace msprobe {

struct KnownCall {
  std::string_view name;
  ConfigDialect dialect;
  std::string_view section, places;
};

namespace {

constexpr size_t kMostCalls = 256;
constexpr size_t kLongestCall = 1 << 14;  // bytes of a line whose calls are read

constexpr KnownCall kCalls[] = {
#define MSP_CALL(name, dialect, section, places) {name, ConfigDialect::dialect, section, places},
#include "config/python_calls.def"
#undef MSP_CALL
};

/// What a library takes for an optimizer that a program is given without more.
struct OptimizerDefault {
  std::string_view package, library, name, key, value;
};
constexpr OptimizerDefault kOptimizerDefaults[] = {
#define MSP_OPTIMIZER(package, library, name, key, value) {package, library, name, key, value},
#include "config/optimizer_defaults.def"
#undef MSP_OPTIMIZER
};

bool IsOneWord(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool NameCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

std::string_view LastName(std::string_view name) {
  const size_t dot = name.rfind('.');
  return name.substr(dot == std::string_view::npos ? 0 : dot + 1);
}

/// Classes of models of transformers, whose arguments are those of config.json, and those of settings of one's own.
bool IsConfigClass(std::string_view name) {
  return EndsWith(name, "Config") && name.size() > 6 &&
         !IsOneWord(name, {"LoraConfig", "PeftConfig", "BitsAndBytesConfig", "GenerationConfig", "ConfigDict",
                           "RunConfig", "CheckpointConfig", "FailureConfig", "ScalingConfig"});
}

bool LooksOnly(std::string_view text) {
  for (const std::string_view word : {"val", "test", "eval", "dev_", "dev=", "infer"}) {
    if (Contains(text, word)) return true;
  }
  return false;
}

/// The class of a part says what it is of an optimizer and a schedule; a model of NeMo takes its configuration first.
void NameParts(ConfigDialect dialect, std::vector<Setting>* settings) {
  for (Setting& setting : *settings) {
    for (const std::string_view part : {"scheduler", "optimizer"}) {
      const std::string end = std::string(part) + "." + std::string(kPythonCall);
      if (EndsWith(setting.key, end))
        setting.key.replace(setting.key.size() - kPythonCall.size(), kPythonCall.size(), "type");
    }
    const size_t dot = setting.key.find('.');
    const bool first = dot != std::string::npos && StartsWith(std::string_view(setting.key).substr(dot), ".0.");
    if (dialect == ConfigDialect::kNemo2 && first) setting.key.replace(dot, 3, ".config.");
  }
  std::erase_if(*settings, [](const Setting& setting) {
    return setting.key == kPythonCall || EndsWith(setting.key, "." + std::string(kPythonCall));
  });
}

}  // namespace

void PythonCallReader::LookAtImport(std::string_view line) {
  const bool from = StartsWith(line, "from ");
  if (!from && !StartsWith(line, "import ")) return;
  const std::string_view rest = line.substr(from ? 5 : 7);
  const auto first = [](std::string_view name) { return std::string(name.substr(0, name.find_first_of(". "))); };
  if (from) {
    const size_t names = rest.find(" import");
    if (names == std::string_view::npos) return;
    const std::string package = first(rest);
    packages_.insert(package);
    for (std::string_view name : Split(rest.substr(names + 7), ',')) {
      while (!name.empty() && !NameCharacter(name.front())) name.remove_prefix(1);
      while (!name.empty() && !NameCharacter(name.back())) name.remove_suffix(1);
      if (const size_t as = name.find(" as "); as != std::string_view::npos) name.remove_prefix(as + 4);
      if (!name.empty()) imported_[std::string(name)] = package;
    }
    return;
  }
  for (std::string_view name : PythonArguments(rest)) {
    while (StartsWith(name, " ")) name.remove_prefix(1);
    const std::string package = first(name);
    packages_.insert(package);
    const size_t as = name.find(" as ");
    imported_[as == std::string_view::npos ? package : std::string(name.substr(as + 4))] = package;
  }
}

void PythonCallReader::Look(const std::vector<PythonLine>& lines) {
  for (const PythonLine& line : lines) {
    LookAtImport(line.text);
    shuffles_ = shuffles_ || Contains(line.text, ".shuffle(") || Contains(line.text, "random.permutation");
    for (const std::string_view word :
         {"Accelerator(", "DistributedSampler(", "init_process_group(", "DistributedDataParallel("}) {
      deals_out_ = deals_out_ || Contains(line.text, word);
    }
  }
  deals_out_ = deals_out_ || packages_.contains("lightning") || packages_.contains("pytorch_lightning");
}

void PythonCallReader::Read(const PythonLine& line) {
  const std::string_view text = line.text;
  if (text.size() > kLongestCall || calls_.size() > kMostCalls) return;
  for (size_t open = text.find('('); open != std::string_view::npos; open = text.find('(', open + 1)) {
    size_t begin = open;
    while (begin > 0 && NameCharacter(text[begin - 1])) --begin;
    const std::string_view name = text.substr(begin, open - begin);
    if (StartsWith(name, "parser.")) continue;
    if (name.empty() && open > 1 && text[open - 1] == ')') {  // L(X)(a=1) of detectron2
      size_t inner = open - 1;
      while (inner > 0 && NameCharacter(text[inner - 1])) --inner;
      const bool lazy =
          (inner > 1 && text.substr(inner - 2, 2) == "L(") || EndsWith(text.substr(0, inner), "LazyCall(");
      if (lazy) ReadCall(text.substr(inner, open - 1 - inner), line, begin, open);
      continue;
    }
    if (!python::StandsForCall(name)) {
      ReadCall(name, line, begin, open);
      continue;
    }
    const std::vector<std::string_view> arguments = PythonArguments(text.substr(open + 1));
    if (arguments.empty() || AssignmentOf(arguments[0]) != std::string_view::npos) continue;
    std::string_view of = arguments[0];
    while (!of.empty() && !NameCharacter(of.front())) of.remove_prefix(1);
    while (!of.empty() && !NameCharacter(of.back())) of.remove_suffix(1);
    const size_t behind = static_cast<size_t>(arguments[0].data() - text.data()) + arguments[0].size();
    if (behind < text.size() && !of.empty() && !IsConfigClass(LastName(of))) ReadCall(of, line, begin, behind);
  }
}

/// `open`: behind which its arguments stand.
void PythonCallReader::ReadCall(std::string_view name, const PythonLine& line, size_t begin, size_t open) {
  const std::string_view last = LastName(name);
  bool listed = false;
  for (const KnownCall& known : kCalls) {
    if (known.name != last) continue;
    AddCall(known, name, line, open);
    listed = true;
  }
  // Those of libraries on top of transformers, and of trl.
  const auto origin = imported_.find(last);
  const bool of_trl =
      origin != imported_.end() && origin->second == "trl" && IsConfigClass(last) && last != "ModelConfig";
  const bool arguments = EndsWith(last, "TrainingArguments") && !packages_.contains("paddlenlp");
  if (!listed && (of_trl || arguments)) {
    AddCall({last, of_trl ? ConfigDialect::kTrl : ConfigDialect::kHfTrainer, "", "output_dir"}, name, line, open);
    listed = true;
  }
  // Those of transformers that are not listed one by one.
  const bool schedule = StartsWith(last, "get_") && Contains(last, "_schedule") && !listed;
  if (schedule && line.text.find('=') < begin) {
    AddCall({last, ConfigDialect::kOwn, "scheduler", ",num_warmup_steps,num_training_steps"}, name, line, open);
  }
  // A recipe of NeMo has its own as parts.
  if (listed || !IsConfigClass(last) || packages_.contains("nemo")) return;
  const auto from = imported_.find(last);
  const bool known = from != imported_.end() && from->second == "transformers";
  AddCall(
      {last, known ? ConfigDialect::kHfModel : ConfigDialect::kOwn, StartsWith(last, "Optim") ? "optimizer" : "", ""},
      name, line, open);
}

void PythonCallReader::AddCall(const KnownCall& call, std::string_view full_name, const PythonLine& line, size_t open) {
  const bool lightning = packages_.contains("lightning") || packages_.contains("pytorch_lightning");
  if (call.dialect == ConfigDialect::kLightning && !lightning) return;  // of transformers, or of one's own
  if (call.dialect == ConfigDialect::kNemo2 && !packages_.contains("nemo")) return;
  ConfigSource source;
  source.dialect = call.dialect;
  source.path = path_;
  const std::string_view text = line.text, arguments = text.substr(open + 1);
  open_decay_ = false;
  AddArguments(call, arguments, line.line, &source);
  if (call.section == "loader" && !AddLoaderDefaults(text.substr(0, open), arguments, &source)) return;
  if (call.section == "optimizer" || call.section == "scheduler") {
    if (call.name != "get_scheduler") {
      source.settings.push_back({std::string(call.section) + ".type", ConfigValue::Of(call.name), path_, line.line});
    }
    AddOptimizerDefaults(call, full_name, &source);
  }
  NameParts(call.dialect, &source.settings);
  if (!source.settings.empty() || source.partial) calls_.push_back(std::move(source));
}

void PythonCallReader::AddArguments(const KnownCall& call, std::string_view arguments, int line, ConfigSource* source) {
  const auto keyed = [&](std::string_view key) {
    return call.section.empty() ? std::string(key) : std::string(call.section) + "." + std::string(key);
  };
  const std::vector<std::string_view> places = Split(call.places, ',');
  size_t place = 0;
  for (const std::string_view part : PythonArguments(arguments)) {
    const size_t equals = AssignmentOf(part);
    std::string_view name = equals == std::string_view::npos
                                ? (place < places.size() ? places[place] : std::string_view())
                                : Trimmed(part.substr(0, equals));
    if (equals == std::string_view::npos) ++place;
    if (StartsWith(Trimmed(part), "**")) {
      const ConfigValue more = value_(Trimmed(part).substr(2));
      if (!more.IsMap() || python::MemberOf(more, kPythonCall)) source->partial = true;  // some are not known
      for (const ConfigMember& member : more.members) {
        if (member.first == kPythonCall) continue;
        ConfigValue map;
        map.kind = ConfigValue::Kind::kMap;
        map.members.push_back({keyed(member.first), member.second});
        Flatten(map, path_, line, &source->settings);
      }
      continue;
    }
    const bool parameters =
        call.section == "optimizer" && (name == "params" || name == "parameters" || (name.empty() && place == 1));
    if (parameters) {
      AddOptimizerGroups(call.section, equals == std::string_view::npos ? part : part.substr(equals + 1), line, source);
      continue;
    }
    if (name.empty()) continue;
    if (name == "max_norm" && call.name == "clip_grad_norm_") name = "max_grad_norm";
    const ConfigValue value = value_(equals == std::string_view::npos ? part : part.substr(equals + 1));
    ConfigValue map;
    map.kind = ConfigValue::Kind::kMap;
    map.members.push_back({keyed(name), value});
    Flatten(map, path_, line, &source->settings);
  }
}

/// [{"params": ..., "weight_decay": 0.1}, {...}]: what each decays by.
void PythonCallReader::AddOptimizerGroups(std::string_view in, std::string_view parameters, int line,
                                          ConfigSource* source) {
  const ConfigValue value = value_(parameters);
  const bool plain = Contains(parameters, "parameters(") || Contains(parameters, "trainable_params()") ||
                     Contains(parameters, "requires_grad");
  if (!value.IsList()) {
    open_decay_ = !plain;
    return;
  }
  std::optional<double> most, least;
  bool all = !value.items.empty();
  for (const ConfigValue& group : value.items) {
    const ConfigValue* decay = python::MemberOf(group, "weight_decay");
    const auto number = decay ? decay->AsNumber() : std::nullopt;
    all = all && number;
    if (!number) open_decay_ = open_decay_ || decay;
    if (!number) continue;
    most = std::max(most.value_or(*number), *number);
    least = std::min(least.value_or(*number), *number);
  }
  const std::string section(in);
  if (least) source->settings.push_back({section + ".undecayed_groups", ConfigValue::Of(*least == 0), path_, line});
  if (all && most) source->settings.push_back({section + ".group_weight_decay", ConfigValue::Of(*most), path_, line});
}

void PythonCallReader::AddOptimizerDefaults(const KnownCall& call, std::string_view full_name,
                                            ConfigSource* source) const {
  if (source->partial) return;
  const std::string_view package = PackageOf(full_name);
  for (const OptimizerDefault& preset : kOptimizerDefaults) {
    const bool told = source->Find("optimizer." + std::string(preset.key)) != nullptr;
    if (preset.name != call.name || preset.package != package || told) continue;
    if (StartsWith(preset.key, "beta") && source->Find("optimizer.betas")) continue;
    const auto rate = [](const Setting& one) {  // a number, or a schedule
      return StartsWith(one.key, "optimizer.learning_rate") || StartsWith(one.key, "optimizer.lr");
    };
    if (preset.key == "lr" && std::any_of(source->settings.begin(), source->settings.end(), rate)) continue;
    if (preset.key == "eps" && source->Find("optimizer.epsilon")) continue;
    if (preset.key == "beta1" && source->Find("optimizer.beta_1")) continue;
    if (preset.key == "beta2" && source->Find("optimizer.beta_2")) continue;
    const bool decay = preset.key == "weight_decay";
    if (decay && (open_decay_ || source->Find("optimizer.group_weight_decay"))) continue;
    source->settings.push_back({"optimizer." + std::string(preset.key), PythonScalar(preset.value),
                                "default of " + std::string(preset.library), 0});
  }
}

bool PythonCallReader::AddLoaderDefaults(std::string_view left, std::string_view arguments,
                                         ConfigSource* source) const {
  const std::vector<std::string_view> parts = PythonArguments(arguments);
  if (LooksOnly(left) || (!parts.empty() && LooksOnly(parts[0]))) return false;
  bool sampled = false;
  for (const std::string_view part : parts) {
    const size_t equals = AssignmentOf(part);
    const std::string_view name = equals == std::string_view::npos ? part : Trimmed(part.substr(0, equals));
    sampled = sampled || Contains(name, "sampler") || StartsWith(Trimmed(part), "**");
  }
  for (Setting& setting : source->settings) {
    if (deals_out_ && setting.key == "loader.batch_size") setting.key = "loader.batch_size_per_device";
  }
  const bool torch = packages_.contains("torch");
  if (!sampled && !shuffles_ && torch && !source->Find("loader.shuffle")) {
    source->settings.push_back({"loader.shuffle", ConfigValue::Of(false), "default of PyTorch", 0});
  }
  return true;
}

std::string_view PythonCallReader::PackageOf(std::string_view full_name) const {
  const std::string_view first = full_name.substr(0, full_name.find('.'));
  const auto from = imported_.find(first);
  std::string_view package = from != imported_.end() ? std::string_view(from->second) : std::string_view();
  if (package.empty() || package == "keras") {
    for (const std::string_view one : {"torch", "mindspore", "paddle", "tensorflow", "keras", "jax"}) {
      if (package.empty() && packages_.contains(one)) package = one;
    }
  }
  if (package.empty()) package = "torch";
  return package == "tensorflow" ? std::string_view("keras") : package;
}

/// One schedule behind another: what a part counts is no length of the whole.
void PythonCallReader::JoinSchedules() {
  std::optional<double> warm, decay;
  for (ConfigSource& source : calls_) {
    for (const auto& [key, out] : {std::pair("scheduler.total_iters", &warm), {"scheduler.T_max", &decay}}) {
      const Setting* found = source.Find(key);
      if (found && found->value.AsNumber()) *out = found->value.AsNumber();
    }
    std::erase_if(source.settings, [](const Setting& setting) {
      return setting.key == "scheduler.total_iters" || setting.key == "scheduler.T_max" ||
             setting.key == "scheduler.milestones" || setting.value.Shown() == "LinearLR" ||
             setting.value.Shown() == "SequentialLR";
    });
  }
  if (!warm || !decay) return;
  ConfigSource source;
  source.dialect = ConfigDialect::kOwn;
  source.path = path_;
  source.settings = {{"scheduler.num_warmup_steps", ConfigValue::Of(*warm), path_},
                     {"scheduler.num_training_steps", ConfigValue::Of(*warm + *decay), path_}};
  calls_.push_back(std::move(source));
}

std::vector<ConfigSource> PythonCallReader::Take() {
  const auto joins = [](const ConfigSource& source) {
    const Setting* type = source.Find("scheduler.type");
    return type && type->value.Shown() == "SequentialLR";
  };
  if (std::any_of(calls_.begin(), calls_.end(), joins)) JoinSchedules();
  const auto shuffled = [](const ConfigSource& source) {
    const Setting* shuffle = source.Find("loader.shuffle");
    return shuffle && shuffle->value.AsBool().value_or(false);
  };
  // Beside one that is shuffled the others read what is only looked at.
  if (std::any_of(calls_.begin(), calls_.end(), shuffled)) {
    std::erase_if(calls_, [](const ConfigSource& source) {
      const Setting* shuffle = source.Find("loader.shuffle");
      return shuffle && !shuffle->value.AsBool().value_or(true);
    });
  }
  return std::move(calls_);
}

}  // namespace msprobe
