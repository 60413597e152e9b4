#include "jobs/configuration/rl_settings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "base/yaml.h"
#include "config/log_settings.h"
#include "config/settings.h"
#include "json/writer.h"

namespace msprobe {
namespace {

using FlatSettings = std::map<std::string, ConfigValue>;
using LogReader = StatusOr<ConfigValue> (*)(std::string_view, const std::string&);

constexpr JsonStyle kSavedStyle{.indent = 2, .comma = ","};
constexpr std::string_view kNotThere = "NA", kSame = "是", kDifferent = "否";

/// Settings of verl that must have these values for training and inference to agree.
constexpr std::array<std::pair<std::string_view, int>, 17> kVerlNeeds = {{
    {"VLLM_ASCEND_ENABLE_NZ", 2},  // the number 0, as it is a variable of the environment
    {"actor_rollout_ref/actor/load_weight", 1},
    {"actor_rollout_ref/actor/megatron/override_transformer_config/use_ascend_mc2", 0},
    {"actor_rollout_ref/actor/override_transformer_config/calculate_per_token_loss", 0},
    {"actor_rollout_ref/actor/shuffle", 0},
    {"actor_rollout_ref/actor/use_dynamic_bsz", 0},
    {"actor_rollout_ref/actor/use_remove_padding", 1},
    {"actor_rollout_ref/model/use_remove_padding", 1},
    {"actor_rollout_ref/ref/load_weight", 1},
    {"actor_rollout_ref/ref/log_prob_use_dynamic_bsz", 0},
    {"actor_rollout_ref/rollout/log_prob_use_dynamic_bsz", 0},
    {"algorithm/filter_groups/enable", 0},
    {"critic/model/use_remove_padding", 1},
    {"critic/shuffle", 0},
    {"critic/use_dynamic_bsz", 0},
    {"data/shuffle", 0},
    {"trainer/balance_batch", 0},
}};

void FlattenWithSlashes(const ConfigValue& value, const std::string& prefix,  // NOLINT(misc-no-recursion): bounded
                        FlatSettings* out) {
  if (value.IsMap() && !value.members.empty()) {
    for (const ConfigMember& member : value.members) {
      FlattenWithSlashes(member.second, prefix.empty() ? member.first : prefix + "/" + member.first, out);
    }
  } else {
    (*out)[prefix] = value;
  }
}

ConfigValue FromYaml(const YamlNode& node) {  // NOLINT(misc-no-recursion): kMaxYamlDepth
  ConfigValue out;
  if (node.IsText()) return YamlScalar(node.text);
  if (node.IsList()) {
    out.kind = ConfigValue::Kind::kList;
    for (const YamlNode& item : node.items) out.items.push_back(FromYaml(item));
  } else if (node.IsMap()) {
    out.kind = ConfigValue::Kind::kMap;
    for (const YamlMember& member : node.members) out.members.push_back({member.first, FromYaml(member.second)});
  }
  return out;
}

std::string EndingOf(std::string_view path) {
  std::string out(BaseName(path));
  const size_t dot = out.rfind('.');
  out = dot == std::string::npos ? "" : out.substr(dot);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

Status CheckLogName(const std::string& path) {
  const std::string ending = EndingOf(path);
  if (ending == ".log" || ending == ".txt") return OkStatus();
  return UsageError(Msg("{} is not a log: give a file that ends in .log or .txt", OneLine(path)));
}

StatusOr<ConfigValue> ReadLogFile(const std::string& path, LogReader read) {
  MSP_RETURN_IF_ERROR(CheckLogName(path));
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return read(file.text(), path);
}

Status SaveConfig(const ConfigValue& value, const std::string& path) {
  JsonWriter json(kSavedStyle);
  value.Write(&json);
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(json.Take()));
  return file.Commit();
}

void AppendCsv(const std::string& text, std::string* out) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    *out += text;
    return;
  }
  *out += '"';
  for (const char c : text) {
    if (c == '"') *out += '"';
    *out += c;
  }
  *out += '"';
}

/// Rows of a key, both values and whether they are the same, as mindstudio-probe titles them.
class SettingsTable {
 public:
  SettingsTable(std::string_view key, std::string_view left, std::string_view right) {
    text_ = "\xEF\xBB\xBF" + std::string(key) + "," + std::string(left) + "," + std::string(right) + ",是否一致\n";
  }
  void Add(const std::string& key, const ConfigValue* left, const ConfigValue* right) {
    const bool same = left && right && *left == *right;
    AppendCsv(key, &text_);
    for (const ConfigValue* value : {left, right}) {
      text_ += ',';
      std::string shown(value ? "" : kNotThere);
      if (value) value->AppendRepr(&shown);
      AppendCsv(shown, &text_);
    }
    text_ += ',';
    text_ += same ? kSame : kDifferent;
    text_ += '\n';
    ++report.rows;
    report.different += same ? 0 : 1;
  }
  Status Save(const std::string& path) {
    MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
    MSP_RETURN_IF_ERROR(file.Write(text_));
    report.files.push_back(path);
    return file.Commit();
  }
  RlReport report;

 private:
  std::string text_;
};

const ConfigValue* FindIn(const FlatSettings& settings, const std::string& key) {
  const auto found = settings.find(key);
  return found == settings.end() ? nullptr : &found->second;
}

StatusOr<RlReport> CompareLogs(const std::string& npu_log, const std::string& bench_log, const std::string& output,
                               LogReader read, const std::vector<std::string_view>& left_out) {
  MSP_ASSIGN_OR_RETURN(const ConfigValue npu, ReadLogFile(npu_log, read));
  MSP_ASSIGN_OR_RETURN(const ConfigValue bench, ReadLogFile(bench_log, read));
  FlatSettings left, right;
  FlattenWithSlashes(npu, "", &left);
  FlattenWithSlashes(bench, "", &right);
  FlatSettings all = left;
  all.insert(right.begin(), right.end());
  SettingsTable table("超参名称", "NPU生效值", "bench生效值");
  for (const auto& [name, value] : all) {
    const std::string& key = name;  // clang captures no structured binding
    const bool skip =
        std::any_of(left_out.begin(), left_out.end(), [&](std::string_view word) { return Contains(key, word); });
    if (!skip) table.Add(key, FindIn(left, key), FindIn(right, key));
  }
  MSP_RETURN_IF_ERROR(MakeOutputDir(output));
  table.report.files = {JoinPath(output, "NPU_config.json"), JoinPath(output, "bench_config.json")};
  MSP_RETURN_IF_ERROR(SaveConfig(npu, table.report.files[0]));
  MSP_RETURN_IF_ERROR(SaveConfig(bench, table.report.files[1]));
  MSP_RETURN_IF_ERROR(table.Save(JoinPath(output, "hyper_params_compare.csv")));
  return std::move(table.report);
}

}  // namespace

StatusOr<RlReport> CompareVerlLogs(const std::string& npu_log, const std::string& bench_log,
                                   const std::string& output) {
  return CompareLogs(npu_log, bench_log, output, ReadVerlConfig, {"profiler/", "ray_"});
}

StatusOr<RlReport> CompareSlimeLogs(const std::string& npu_log, const std::string& bench_log,
                                    const std::string& output) {
  return CompareLogs(npu_log, bench_log, output, ReadArgumentList, {"profile"});
}

StatusOr<RlReport> VerifyVerlLog(const std::string& bench_yaml, const std::string& log, const std::string& output) {
  FlatSettings needs;
  if (bench_yaml.empty()) {
    for (const auto& [key, value] : kVerlNeeds) {
      needs[std::string(key)] = value == 2 ? ConfigValue::Of(int64_t{0}) : ConfigValue::Of(value == 1);
    }
  } else {
    const std::string ending = EndingOf(bench_yaml);
    if (ending != ".yaml" && ending != ".yml") {
      return UsageError(
          Msg("{} is not a yaml file: -vv takes the yaml of the settings first, then the log", OneLine(bench_yaml)));
    }
    MSP_ASSIGN_OR_RETURN(const YamlNode root, ReadYamlFile(bench_yaml, {.aliases = true}));
    FlattenWithSlashes(FromYaml(root), "", &needs);
  }
  MSP_ASSIGN_OR_RETURN(const ConfigValue target, ReadLogFile(log, ReadVerlConfig));
  FlatSettings found;
  FlattenWithSlashes(target, "", &found);
  SettingsTable table("关键参数名称", "bench生效值", "target生效值");
  for (const auto& [key, value] : needs) table.Add(key, &value, FindIn(found, key));
  MSP_RETURN_IF_ERROR(MakeOutputDir(output));
  table.report.files = {JoinPath(output, "tgt_config.json")};
  MSP_RETURN_IF_ERROR(SaveConfig(target, table.report.files[0]));
  MSP_RETURN_IF_ERROR(table.Save(JoinPath(output, "hyper_params_verify.csv")));
  return std::move(table.report);
}

}  // namespace msprobe
