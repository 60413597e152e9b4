#include "jobs/configuration/config_pack.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/message.h"
#include "base/python_process.h"
#include "base/text.h"
#include "config/read_configuration.h"
#include "jobs/configuration/configuration_page.h"
#include "jobs/configuration/packages_program.h"
#include "jobs/configuration/secrets.h"
#include "json/writer.h"
#include "sheet/zip_writer.h"

extern char** environ;

namespace msprobe {
namespace {

constexpr int kSecondsOfPython = 60;
constexpr JsonStyle kPackStyle{.indent = 4, .comma = ","};

std::string ShownValue(std::string_view name, const std::string& value) {
  return IsSecret(name, value) ? std::string(kHiddenValue) : value;
}

std::string EnvironmentJson(const Configuration& configuration) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || !IsTrainingVariable(text.substr(0, equals))) continue;
    variables[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  // What a script sets holds when it starts the training.
  for (const Setting& variable : configuration.environment) {
    if (IsTrainingVariable(variable.key)) variables[variable.key] = variable.value.Shown();
  }
  JsonWriter json(kPackStyle);
  json.BeginObject();
  for (const auto& [name, value] : variables) json.Member(name, ShownValue(name, value));
  json.EndObject();
  return json.Take();
}

StatusOr<std::string> PackageLines() {
  MSP_ASSIGN_OR_RETURN(const auto python, PythonProcess::Start("config_check", PackagesProgram(), {}));
  std::string out;
  while (true) {
    MSP_ASSIGN_OR_RETURN(const std::string line, python->ReadLine(kSecondsOfPython));
    if (line == ".") return out;
    out += line + "\n";
  }
}

ConfigValue WithoutSecrets(const std::string& name, const ConfigValue& value) {  // NOLINT(misc-no-recursion)
  ConfigValue out = value;
  if (value.IsText() && IsSecret(name, value.text)) return ConfigValue::Of(kHiddenValue);
  for (ConfigValue& item : out.items) item = WithoutSecrets(name, item);
  for (ConfigMember& member : out.members) member.second = WithoutSecrets(member.first, member.second);
  return out;
}

/// The settings of all files as one object; one that files give different values is marked as such.
std::string SettingsJson(const Configuration& configuration) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<ConfigValue>> values;
  const auto add = [&](const std::vector<Setting>& settings) {
    std::map<std::string, const Setting*> last;
    for (const Setting& setting : settings) last[setting.key] = &setting;
    for (const Setting& setting : settings) {
      const Setting* counts = std::exchange(last[setting.key], nullptr);  // in the place of the first of its name
      if (!counts || counts->value.IsNull()) continue;
      const std::string& name = setting.written.empty() ? setting.key : setting.written;
      std::vector<ConfigValue>& known = values[name];
      if (known.empty()) order.push_back(name);
      const ConfigValue value = WithoutSecrets(name, counts->value);
      if (known.empty() || !(known.back() == value)) known.push_back(value);
    }
  };
  add(configuration.launcher);
  for (const ConfigSource& source : configuration.sources) add(source.settings);
  JsonWriter json(kPackStyle);
  json.BeginObject();
  for (const std::string& key : order) {
    const std::vector<ConfigValue>& known = values[key];
    json.Key(key);
    if (known.size() == 1) {
      known[0].Write(&json);
      continue;
    }
    json.BeginObject();
    json.Member("description", "duplicate_value");
    json.ArrayMember("values", known, [&](const ConfigValue& value) { value.Write(&json); });
    json.EndObject();
  }
  json.EndObject();
  return order.empty() ? std::string() : json.Take();
}

}  // namespace

StatusOr<PackReport> CollectPack(const std::vector<std::string>& files, const std::string& output) {
  if (!EndsWith(output, ".zip")) {
    return UsageError(Msg("the pack {} must end in .zip: give another name with -o", OneLine(output)));
  }
  MSP_ASSIGN_OR_RETURN(const Configuration configuration, ReadConfiguration(files));
  PackReport out;
  out.path = output;
  out.warnings = configuration.notes;
  std::vector<ZipEntry> entries = {{"env", EnvironmentJson(configuration)}};
  if (const auto packages = PackageLines(); packages.ok()) {
    entries.push_back({"pip", *packages});
  } else {
    out.warnings.push_back(Msg("the packages of Python are not in the pack: {}", packages.status().text()));
  }
  const std::string settings = SettingsJson(configuration);
  if (!settings.empty()) {
    entries.push_back({"hyperparameters/hyperparameters_static.json", settings});
  } else if (!files.empty()) {
    out.warnings.push_back(Msg("no settings were found in the given files: the pack has none"));
  }
  const std::string directory(DirName(output));
  if (!directory.empty()) MSP_RETURN_IF_ERROR(MakeOutputDir(directory));
  MSP_RETURN_IF_ERROR(WriteZip(output, entries));
  for (const ZipEntry& entry : entries) out.parts.push_back(entry.name);
  return out;
}

StatusOr<PackComparison> ComparePackFiles(const std::string& bench, const std::string& cmp, const std::string& output,
                                          bool older) {
  MSP_ASSIGN_OR_RETURN(const PackFile bench_file, PackFile::Open(bench));
  MSP_ASSIGN_OR_RETURN(const PackFile cmp_file, PackFile::Open(cmp));
  MSP_ASSIGN_OR_RETURN(const Pack bench_pack, bench_file.Read());
  MSP_ASSIGN_OR_RETURN(const Pack cmp_pack, cmp_file.Read());
  PackComparison out;
  out.parts = ComparePacks(bench_pack, cmp_pack);
  for (const Pack* pack : {&bench_pack, &cmp_pack}) {
    out.warnings.insert(out.warnings.end(), pack->warnings.begin(), pack->warnings.end());
  }
  MSP_RETURN_IF_ERROR(MakeOutputDir(output));
  MSP_RETURN_IF_ERROR(bench_file.Unpack(JoinPath(output, "bench")));
  MSP_RETURN_IF_ERROR(cmp_file.Unpack(JoinPath(output, "cmp")));
  std::vector<Sheet> sheets = {SummarySheet(out.parts, older)};
  for (const PackPart& part : out.parts) sheets.push_back(part.sheet);
  out.path = JoinPath(output, "result.xlsx");
  MSP_RETURN_IF_ERROR(WriteWorkbook(out.path, sheets));
  const std::string page = JoinPath(output, "result.html");
  MSP_ASSIGN_OR_RETURN(const bool drawn, WritePackPage(page, ConfigurationSides{{{{cmp}, {bench}}}, {}}, out.parts,
                                                       out.warnings, {out.path}));
  if (drawn) out.page = page;
  return out;
}

}  // namespace msprobe
