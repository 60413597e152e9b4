#include "config/python_program.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "base/message.h"
#include "base/text.h"
#include "config/python_calls.h"
#include "config/python_expression.h"
#include "config/python_lines.h"

namespace msprobe {
namespace {

constexpr size_t kMostSettings = 1 << 14;
constexpr size_t kLargestValue = 1 << 14, kMostKept = 1 << 21;  // as SizeOf() counts
constexpr size_t kLongestCall = 1 << 14;                        // bytes of a line whose calls are read

bool IsPythonName(std::string_view text) {
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; });
}

std::string Underscored(std::string_view name) {
  while (StartsWith(name, "-")) name.remove_prefix(1);
  std::string out(name);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

/// Objects that hold settings: what follows their name is that of the setting.
std::string_view WithoutHolder(std::string_view name) {
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return name;
  const std::string_view first = name.substr(0, dot);
  for (const std::string_view holder :
       {"self", "args", "config", "cfg", "conf", "c", "C", "_C", "opt", "opts", "hparams", "hps", "params", "FLAGS"}) {
    if (first == holder) return name.substr(dot + 1);
  }
  return name;
}

class ProgramReader {
 public:
  ProgramReader(const std::string& path, const std::vector<Setting>& given, const PythonFiles& files)
      : path_(path),
        given_(given),
        files_(files),
        calls_(path, [this](std::string_view text) { return Value(text); }) {}

  StatusOr<PythonProgram> Read(std::string_view text) {
    const std::vector<PythonLine> lines = PythonLines(text);
    for (const PythonLine& line : lines) ReadOptions(line);
    calls_.Look(lines);
    ReadClasses(lines);
    for (const auto& [written, option] : out_.options) {
      for (const Setting& setting : given_) {
        if (setting.key != written && setting.key != option.name) continue;
        const bool bare = setting.value.kind == ConfigValue::Kind::kBool && setting.value.flag;
        presets_[option.name] = bare ? option.bare : Typed(setting.value);
      }
    }
    Compose(lines);
    for (const PythonLine& line : lines) {
      Enter(line);
      ReadLine(line);
      if (out_.settings.size() > kMostSettings) break;
    }
    out_.calls = calls_.Take();
    return std::move(out_);
  }

 private:
  struct Block {
    int indent = 0;
    bool settings = false;  // whether names that it sets are settings
    bool of_class = false;
  };

  static ConfigValue Typed(const ConfigValue& value) { return value.IsText() ? PythonScalar(value.text) : value; }

  const ConfigValue* Lookup(std::string_view name) const {
    if (const auto found = names_.find(name); found != names_.end()) return &found->second;
    const size_t dot = name.rfind('.');  // args.lr, training_args.lr
    if (dot == std::string_view::npos || name.find('.') != dot) return OfClass(name);
    if (StartsWith(name, "torch") || StartsWith(name, "os.") || StartsWith(name, "np.")) return nullptr;
    const std::string_view last = name.substr(dot + 1);
    if (const auto found = presets_.find(last); found != presets_.end()) return &found->second;
    if (const auto held = names_.find(WithoutHolder(name)); held != names_.end()) return &held->second;
    return OfClass(name);
  }

  /// self.lr, self.hparams.lr, and lr itself where a class is made with it.
  const ConfigValue* OfClass(std::string_view name) const {
    for (const std::string_view holder : {"self.hparams.", "self."}) {
      if (StartsWith(name, holder)) {
        name.remove_prefix(holder.size());
        break;
      }
    }
    const auto found = made_.find(name);
    return found == made_.end() ? nullptr : &found->second;
  }

  ConfigValue Value(std::string_view text) {
    ConfigValue value = PythonValue(text, [this](std::string_view name) { return Lookup(name); });
    if (const ConfigValue* name = LoadedBy(value)) value = files_.load ? files_.load(name->Shown()) : ConfigValue();
    const size_t size = SizeOf(value);
    if (size > kLargestValue || (kept_ += size) > kMostKept) return python::Open("large");
    return value;
  }

  /// The name of the file that a call reads settings from: yaml.safe_load(open("a.yaml")), OmegaConf.load("a.yaml");
  /// null.
  static const ConfigValue* LoadedBy(const ConfigValue& value) {
    const auto call = [](const ConfigValue& one) {
      const ConfigValue* name = one.IsMap() ? python::MemberOf(one, kPythonCall) : nullptr;
      return name ? std::string_view(name->text) : std::string_view();
    };
    const std::string_view name = call(value);
    const bool loads = EndsWith(name, "safe_load") || name == "yaml.load" || EndsWith(name, "OmegaConf.load") ||
                       name == "json.load" || name == "toml.load" || name == "tomllib.load" ||
                       name == "yaml.full_load" || EndsWith(name, "Config.fromfile") ||
                       EndsWith(name, "load_hyperpyyaml");
    if (!loads) return nullptr;
    const ConfigValue* file = python::MemberOf(value, "0");
    for (int i = 0; file && file->IsMap() && i < 3; ++i) {  // open(...), Path(...)
      const std::string_view opens = call(*file);
      if (opens != "open" && !EndsWith(opens, "Path") && !EndsWith(opens, ".open")) return nullptr;
      file = python::MemberOf(*file, "0");
    }
    return file && file->IsText() && !python::IsOpenText(*file) ? file : nullptr;
  }

  /// @hydra.main(config_path="conf", config_name="config"), and the name of its function's parameter.
  void Compose(const std::vector<PythonLine>& lines) {
    for (size_t i = 0; i + 1 < lines.size(); ++i) {
      const std::string_view text = lines[i].text;
      if (!StartsWith(text, "@hydra.main(") || !files_.compose) continue;
      std::string folder, name;
      for (const std::string_view part : PythonArguments(text.substr(text.find('(') + 1))) {
        const size_t equals = AssignmentOf(part);
        const std::string_view key = equals == std::string_view::npos ? "" : Trimmed(part.substr(0, equals));
        const ConfigValue value = equals == std::string_view::npos ? ConfigValue() : Value(part.substr(equals + 1));
        if (key == "config_path" && value.IsText()) folder = value.text;
        if (key == "config_name" && value.IsText()) name = value.text;
      }
      size_t at = i + 1;
      while (at < lines.size() && StartsWith(lines[at].text, "@")) ++at;
      const ConfigValue composed = files_.compose(folder, name);
      const std::string_view def = at < lines.size() ? std::string_view(lines[at].text) : std::string_view();
      const size_t open = def.find('(');
      if (!StartsWith(def, "def ") || open == std::string_view::npos || !composed.IsMap()) continue;
      const std::vector<std::string_view> parameters = PythonArguments(def.substr(open + 1));
      if (parameters.empty()) continue;
      names_[std::string(Trimmed(parameters[0].substr(0, parameters[0].find(':'))))] = composed;
    }
  }

  /// with open("a.yaml") as f.
  void ReadOpened(std::string_view text) {
    const size_t as = text.rfind(" as ");
    if (!StartsWith(text, "with ") || as == std::string_view::npos || !EndsWith(text, ":")) return;
    const std::string_view name = Trimmed(text.substr(as + 4, text.size() - as - 5));
    if (IsPythonName(name)) names_[std::string(name)] = Value(text.substr(5, as - 5));
  }

  void Enter(const PythonLine& line) {
    while (!blocks_.empty() && line.indent <= blocks_.back().indent) blocks_.pop_back();
    const std::string_view text = line.text;
    const bool of_class = StartsWith(text, "class ");
    if (!of_class && !StartsWith(text, "def ") && !StartsWith(text, "async def ") && !EndsWith(text, ":")) return;
    bool settings = of_class || StartsWith(text, "if __name__") || Settings();
    if (StartsWith(text, "def ")) {
      const std::string_view name = text.substr(4, text.find('(') - 4);
      settings = name == "main" || name == "train" || name == "__init__" || Contains(name, "config") ||
                 Contains(name, "hparams") || Contains(name, "hyperparam") || Contains(name, "defaults");
      if (name == "main" || name == "train") ReadParameters(line);
    } else if (StartsWith(text, "for ") || StartsWith(text, "while ")) {
      settings = false;
    }
    blocks_.push_back({line.indent, settings, of_class});
  }

  bool Settings() const { return blocks_.empty() || blocks_.back().settings; }

  void ReadLine(const PythonLine& line) {
    ReadDivided(line);
    ReadOpened(line.text);
    ReadAssignment(line);
    const bool defines = StartsWith(line.text, "def ") || StartsWith(line.text, "class ") ||
                         StartsWith(line.text, "import ") || StartsWith(line.text, "from ");
    if (!defines) calls_.Read(line);
  }

  void Add(const std::string& key, const ConfigValue& value, int line) {
    std::vector<Setting> flat;
    if (python::MemberOf(value, "_delete_")) flat.push_back({key + "._delete_", ConfigValue::Of(true), path_, line});
    if (value.IsMap() || value.IsList()) {
      ConfigValue map;
      map.kind = ConfigValue::Kind::kMap;
      map.members.push_back({key, value});
      Flatten(map, path_, line, &flat);
    } else {
      flat.push_back({key, value, path_, line});
    }
    std::erase_if(flat, [](const Setting& one) { return EndsWith(one.key, "." + std::string(kPythonCall)); });
    if (out_.settings.size() + flat.size() > kMostSettings) return;
    for (Setting& setting : flat) out_.settings.push_back(std::move(setting));
  }

  /// accumulation //= world_size: the steps of all processes together.
  void ReadDivided(const PythonLine& line) {
    const size_t at = line.text.find("//");
    if (at == std::string::npos || line.text.find("accum") >= at) return;
    if (!Contains(line.text, "=") || !Contains(std::string_view(line.text).substr(at), "world")) return;
    out_.settings.push_back({"accumulation_of_all_processes", ConfigValue::Of(true), path_, line.line});
  }

  /// name = value, name: type = value, config.name = value.
  void ReadAssignment(const PythonLine& line) {
    const size_t equals = AssignmentOf(line.text);
    if (equals == std::string_view::npos) return;
    std::string_view left = Trimmed(std::string_view(line.text).substr(0, equals));
    const std::string_view right = Trimmed(std::string_view(line.text).substr(equals + 1));
    constexpr std::string_view kVariable = "os.environ[";
    if (StartsWith(left, kVariable)) {
      const ConfigValue name = Value(left.substr(kVariable.size(), left.size() - kVariable.size() - 1));
      if (name.IsText()) out_.environment.push_back({name.text, Value(right), path_, line.line});
      return;
    }
    if (const size_t colon = left.find(':'); colon != std::string_view::npos) left = Trimmed(left.substr(0, colon));
    if (!IsPythonName(left)) return;
    ConfigValue value = Value(right);
    if (value.IsMap() && LoadedBy(PythonValue(right, [this](std::string_view name) { return Lookup(name); }))) {
      names_[std::string(left)] = std::move(value);  // which is a source of its own
      return;
    }
    if (left == "_base_") {
      if (value.IsText()) out_.bases.push_back(value.text);
      for (const ConfigValue& item : value.items) out_.bases.push_back(item.Shown());
      return;
    }
    const std::string key(WithoutHolder(left));
    const bool in_class = !blocks_.empty() && blocks_.back().of_class;
    // A command may set what a module of settings has.
    const auto told = std::find_if(given_.rbegin(), given_.rend(), [&](const Setting& s) { return s.key == key; });
    const bool overridden = told != given_.rend() && !presets_.contains(key) && Settings();
    if (overridden && !told->value.IsList()) value = Typed(told->value);
    const bool made = value.IsMap() && !value.members.empty() && value.members[0].first == kPythonCall;
    names_[std::string(left)] = value;
    if (key != left) names_[key] = value;
    if (in_class) presets_.try_emplace(key, value);
    if (!Settings() || made || python::IsOpenText(value) || key == "parser" || StartsWith(key, "__")) return;
    if (StartsWith(key, "_") && blocks_.empty()) return;
    const bool groups = std::any_of(value.items.begin(), value.items.end(),
                                    [](const ConfigValue& item) { return python::MemberOf(item, "params"); });
    if (groups) return;  // of an optimizer, whose call says it
    Add(key, value, line.line);
  }

  /// Parameters of main() with what they are by default, as fire and typer offer them.
  void ReadParameters(const PythonLine& line) {
    const std::string_view text = line.text;
    const size_t open = text.find('(');
    if (open == std::string_view::npos) return;
    for (const std::string_view part : PythonArguments(text.substr(open + 1))) {
      const size_t equals = AssignmentOf(part);
      if (equals == std::string_view::npos) continue;
      std::string_view name = part.substr(0, equals);
      name = Trimmed(name.substr(0, name.find(':')));
      ConfigValue value = Value(part.substr(equals + 1));
      if (!IsPythonName(name) || python::IsOpenText(value)) continue;
      const std::string key(name);
      const auto told = std::find_if(given_.rbegin(), given_.rend(), [&](const Setting& s) { return s.key == key; });
      if (told != given_.rend() && !told->value.IsList()) value = Typed(told->value);
      names_[key] = value;
      Add(key, value, line.line);
    }
  }

  /// parser.add_argument("-b", "--batch-size", default=32), DEFINE_float("lr", 0.1), @click.option("--lr",
  /// default=0.1).
  void ReadOptions(const PythonLine& line) {
    for (const std::string_view call : {"add_argument", "add_arg", ".option", "DEFINE_"}) {
      const size_t at = line.text.find(call);
      const size_t open = at == std::string::npos ? at : line.text.find('(', at);
      if (open == std::string::npos) continue;
      std::vector<std::string> written;
      ConfigValue preset;
      PythonOption option;
      bool told = false, negated = false;
      for (const std::string_view part : PythonArguments(std::string_view(line.text).substr(open + 1))) {
        const size_t equals = AssignmentOf(part);
        if (equals == std::string_view::npos) {
          const ConfigValue value = Value(part);
          const bool defined = call == "DEFINE_" && !written.empty() && !told;
          if (defined)
            preset = value, told = true;
          else if (value.IsText() && !python::IsOpenText(value))
            written.push_back(value.text);
          continue;
        }
        const std::string_view name = Trimmed(part.substr(0, equals));
        const ConfigValue value = Value(part.substr(equals + 1));
        if (name == "default") preset = value, told = true;
        if (name == "dest") option.name = value.Shown();
        if (name == "const") option.bare = value;
        if (name == "is_flag" && !told) preset = ConfigValue::Of(false), told = true;
        const bool stores = name == "action" && (value.Shown() == "store_true" || value.Shown() == "store_false");
        if (!stores) continue;
        negated = value.Shown() == "store_false";
        option.bare = ConfigValue::Of(!negated);
        if (!told) preset = ConfigValue::Of(negated), told = true;
      }
      if (written.empty()) continue;
      for (const std::string& name : written) {
        const bool longer = StartsWith(name, "--") || call == "DEFINE_";
        if (option.name.empty() && longer) option.name = Underscored(name.substr(0, name.find('/')));
      }
      if (option.name.empty()) option.name = Underscored(written.front());
      for (const std::string& name : written) out_.options[Underscored(name)] = option;
      out_.options[option.name].name = option.name;
      presets_[option.name] = preset;
      if (!python::IsOpenText(preset)) Add(option.name, preset, line.line);
      return;
    }
  }

  /// What the classes of the file are made with: parameters of __init__ as they are by default, and as the file gives
  /// them.
  void ReadClasses(const std::vector<PythonLine>& lines) {
    std::string name;
    std::set<std::string, std::less<>> made;
    for (const PythonLine& line : lines) {
      if (StartsWith(line.text, "class ")) name = line.text.substr(6, line.text.find_first_of("(:") - 6);
      if (!StartsWith(line.text, "def __init__(") || name.empty()) continue;
      made.insert(name);
      TakeArguments(std::string_view(line.text).substr(line.text.find('(') + 1), true);
    }
    for (const PythonLine& line : lines) {
      const std::string_view text = line.text;
      if (StartsWith(text, "class ") || text.size() > kLongestCall) continue;
      for (size_t open = text.find('('); open != std::string_view::npos; open = text.find('(', open + 1)) {
        size_t begin = open;
        while (begin > 0 && IsPythonName(text.substr(begin - 1, open - begin + 1)) && text[begin - 1] != '.') --begin;
        if (made.contains(text.substr(begin, open - begin))) TakeArguments(text.substr(open + 1), false);
      }
    }
  }

  /// name=value of parameters or arguments, as what self.name and self.hparams.name are.
  void TakeArguments(std::string_view arguments, bool defaults) {
    for (const std::string_view part : PythonArguments(arguments)) {
      const size_t equals = AssignmentOf(part);
      if (equals == std::string_view::npos) continue;
      const std::string_view before = part.substr(0, equals);
      const std::string name(Trimmed(before.substr(0, before.find(':'))));
      ConfigValue value = Value(part.substr(equals + 1));
      if (!IsPythonName(name) || value.IsNull() || python::IsOpenText(value)) continue;
      if (defaults)
        made_.try_emplace(name, std::move(value));
      else
        made_.insert_or_assign(name, std::move(value));
    }
  }

  const std::string& path_;
  const std::vector<Setting>& given_;
  const PythonFiles& files_;
  PythonCallReader calls_;
  PythonProgram out_;
  std::vector<Block> blocks_;
  std::map<std::string, ConfigValue, std::less<>> names_, presets_, made_;  // options and fields; of classes
  size_t kept_ = 0;                                                         // of all values, as SizeOf() counts
};

}  // namespace

StatusOr<PythonProgram> ReadPythonProgram(std::string_view text, const std::string& path,
                                          const std::vector<Setting>& given, const PythonFiles& files) {
  if (!IsUtf8(text)) return BadInput(Msg("{} is not UTF-8 text: save it as UTF-8", path));
  return ProgramReader(path, given, files).Read(text);
}

void NameByOptions(const PythonProgram& program, std::vector<Setting>* arguments) {
  for (Setting& setting : *arguments) {
    const auto found = program.options.find(setting.key);
    if (found == program.options.end()) {
      constexpr std::string_view kNo = "no_";  // of BooleanOptionalAction
      const bool bare = setting.value.kind == ConfigValue::Kind::kBool && setting.value.flag;
      const std::string plain = StartsWith(setting.key, kNo) ? setting.key.substr(kNo.size()) : std::string();
      if (!bare || plain.empty() || !program.options.contains(plain)) continue;
      setting.key = plain;
      setting.value = ConfigValue::Of(false);
      continue;
    }
    const bool bare = setting.value.kind == ConfigValue::Kind::kBool && setting.value.flag;
    if (bare) setting.value = found->second.bare;
    setting.key = found->second.name;
  }
}

}  // namespace msprobe
