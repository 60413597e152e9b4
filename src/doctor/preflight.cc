#include "doctor/preflight.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "checks/effective.h"
#include "config/read_configuration.h"
#include "diagnose/overflow/overflow.h"
#include "diagnose/story/story.h"
#include "doctor/config_evidence.h"
#include "doctor/step_tensor.h"
#include "json/writer.h"
#include "tensor/kernels/stats.h"
#include "weights/open_checkpoint.h"

namespace msprobe {
namespace {

constexpr double kIgnoredLabel = -100;  // what losses of PyTorch and Hugging Face leave out

class Preflight {
 public:
  explicit Preflight(PreflightReport* out) : out_(out) {}

  Status Run() {
    MSP_RETURN_IF_ERROR(LookAtConfigs());
    LookAtBatches();
    MSP_RETURN_IF_ERROR(LookAtWeights());
    LookAtLog();
    MSP_RETURN_IF_ERROR(LookAtDumps());
    std::stable_sort(out_->findings.begin(), out_->findings.end(),
                     [](const auto& x, const auto& y) { return x.verdict > y.verdict; });
    return OkStatus();
  }

 private:
  void Add(const std::string& check, PreflightVerdict verdict, BothWords text, BothWords fix = {}) {
    out_->findings.push_back({check, verdict, std::move(text), std::move(fix)});
  }
  void NotSeen(BothWords what) { out_->not_seen.push_back(std::move(what)); }

  Status LookAtConfigs() {
    const RunFiles& run = out_->run;
    if (run.configs.empty()) {
      NotSeen(Both("configuration: give the launch script, yaml or json", "配置：请给出启动脚本、yaml 或 json"));
      return OkStatus();
    }
    MSP_ASSIGN_OR_RETURN(const ConfigEvidence config, CompareConfigs(run, nullptr));
    for (const ConfigDifference& d : config.single) {
      Add(d.id, PreflightVerdict::kFail,
          {d.reason.en + ": " + d.b + " (" + d.b_from + ")", d.reason.zh + "：" + d.b + "（" + d.b_from + "）"}, d.fix);
    }
    if (config.single.empty() && config.seen) {
      Add("config", PreflightVerdict::kPass,
          Both("no rule about one run fails; {} are to be asked of a person", "单次运行的规则无失败；{} 项需人工确认",
               config.asked));
    }
    Configuration all;
    for (const std::string& path : run.configs) {
      if (!EndsWith(path, ".zip")) MSP_RETURN_IF_ERROR(AddFile(path, &all));
    }
    vocab_ = EffectiveRun(std::move(all)).Number("vocab_size");
    return OkStatus();
  }

  void LookAtBatches() {
    const RunFiles& run = out_->run;
    if (run.batches.empty()) {
      NotSeen(Both("data: save batches with msprobe run --save-batches DIR -- COMMAND",
                   "数据：请用 msprobe run --save-batches DIR -- 训练命令 保存数据"));
      return;
    }
    size_t before = out_->findings.size();
    for (const auto& [step, files] : run.batches) LookAtBatch(step, files);
    if (before == out_->findings.size()) {
      Add("data", PreflightVerdict::kPass,
          Both("the batches of {} steps are sound", "{} 步的数据无异常", run.batches.size()));
    }
  }

  void LookAtBatch(int step, const StepFiles& files) {
    std::optional<StepTensor> tokens, labels;
    for (const auto& [file, path] : files) {
      auto tensors = ReadStepTensors(path);
      if (!tensors.ok()) {
        Add("data.readable", PreflightVerdict::kWarn, Both(tensors.status().text()));
        continue;
      }
      for (auto& [own, tensor] : *tensors) {
        const std::string name = own.empty() ? file : file + "/" + own;
        const bool ids = Contains(name, "token") || Contains(name, "input_ids");
        const bool label = Contains(name, "label");
        CheckValues(step, name, tensor, ids, label);
        if (label) {
          labels = std::move(tensor);
        } else if (ids) {
          tokens = std::move(tensor);
        }
      }
    }
    if (tokens && labels) CheckShift(step, *tokens, *labels);
  }

  bool Told(const std::string& check) const {
    return std::any_of(out_->findings.begin(), out_->findings.end(), [&](const auto& f) { return f.check == check; });
  }

  void CheckValues(int step, const std::string& name, const StepTensor& t, bool ids, bool label) {
    const size_t bad = static_cast<size_t>(
        std::count_if(t.values.begin(), t.values.end(), [](double v) { return !std::isfinite(v); }));
    if (bad > 0 && !Told("data.finite")) {
      Add("data.finite", PreflightVerdict::kFail,
          Both("step {}: {} has {} elements that are NaN or infinite", "第 {} 步：{} 有 {} 个 NaN 或无穷元素", step + 1,
               name, bad),
          Both("look at how this sample is made", "检查该样本的生成"));
    }
    if (!ids && !label) return;
    for (const double v : t.values) {
      const bool ignored = label && v == kIgnoredLabel;
      if (ignored || (v >= 0 && (!vocab_ || v < *vocab_)) || Told("data.input_ids")) continue;
      Add("data.input_ids", PreflightVerdict::kFail,
          Both("step {}: {} holds the id {}, which lies outside of the vocabulary{}",
               "第 {} 步：{} 含有超出词表的 id {}{}", step + 1, name, PyRepr(v),
               vocab_ ? " of " + PyRepr(*vocab_) : std::string()),
          Both("use the tokenizer of the model", "使用与模型一致的分词器"));
      return;
    }
  }

  void CheckShift(int step, const StepTensor& tokens, const StepTensor& labels) {
    if (tokens.shape != labels.shape || tokens.shape.empty() || Told("data.labels")) return;
    const size_t width = static_cast<size_t>(tokens.shape.back());
    size_t next = 0, previous = 0, count = 0;
    for (size_t row = 0; width > 2 && row + width <= tokens.values.size(); row += width) {
      for (size_t i = 1; i + 1 < width; ++i) {
        const double label = labels.values[row + i];
        if (label == kIgnoredLabel) continue;
        ++count;
        if (label == tokens.values[row + i + 1]) ++next;
        if (label == tokens.values[row + i - 1]) ++previous;
      }
    }
    if (count < 8 || 2 * previous <= count || 2 * next > count) return;
    Add("data.labels", PreflightVerdict::kFail,
        Both("step {}: labels are the tokens before, not those behind", "第 {} 步：labels 是前一个 token，而不是后一个",
             step + 1),
        Both("shift the labels by one to the left", "将 labels 左移一位"));
  }

  Status LookAtWeights() {
    const RunFiles& run = out_->run;
    if (run.checkpoints.empty()) {
      NotSeen(Both("weights: give the checkpoint that the run begins with", "权重：请给出训练起始的权重文件"));
      return OkStatus();
    }
    const std::string& path = run.checkpoints.front().path;
    MSP_ASSIGN_OR_RETURN(const Checkpoint checkpoint, OpenCheckpoint(path));
    size_t bad = 0;
    for (const WeightTensor& tensor : checkpoint.tensors) {
      if (LookAtTensor(tensor)) continue;
      ++bad;
    }
    if (bad == 0) {
      Add("weights", PreflightVerdict::kPass,
          Both("{}: {} tensors are finite, and none is all zeros", "{}：{} 个张量均为有限值且无全零权重", path,
               checkpoint.tensors.size()));
    }
    return OkStatus();
  }

  bool LookAtTensor(const WeightTensor& tensor) {
    int64_t nan = 0;
    bool zero = tensor.shape.size() >= 2 && tensor.elements() > 0;
    for (const WeightBlock& block : tensor.blocks) {
      Stats stats;
      if (!ComputeStats(block.view(), &stats)) return true;
      nan += stats.nan_count + stats.inf_count;
      zero = zero && stats.norm == 0;
    }
    if (nan > 0) {
      Add("weights.finite", PreflightVerdict::kFail,
          Both("{} has {} elements that are NaN or infinite", "{} 有 {} 个 NaN 或无穷元素", tensor.name, nan),
          Both("convert or save the checkpoint again", "重新转换或保存权重"));
    } else if (zero) {
      Add("weights.zero", PreflightVerdict::kWarn, Both("{} is all zeros", "{} 全为零", tensor.name),
          Both("check that it was loaded; some models begin so", "确认其已加载；部分模型初始即为零"));
    }
    return nan == 0 && !zero;
  }

  void LookAtLog() {
    const RunFiles& run = out_->run;
    if (run.logs.empty()) {
      NotSeen(Both("losses: give the log of a short run", "loss：请给出一次短训练的日志"));
      return;
    }
    const TrainingLog& log = run.logs.front();
    const size_t before = out_->findings.size();
    for (const LoggedStep& step : log.steps) {
      const bool bad =
          !std::isfinite(step.loss.value) || (step.gradient_norm && !std::isfinite(step.gradient_norm->value));
      if (!bad) continue;
      Add("log.finite", PreflightVerdict::kFail,
          Both("step {}: loss or gradient norm is not finite", "第 {} 步：loss 或梯度范数不是有限值", step.number),
          Both("record the step before: msprobe run --task overflow_check",
               "采集前一步：msprobe run --task overflow_check"));
      break;
    }
    const LoggedStep& first = log.steps.front();
    if (vocab_ && *vocab_ > 1 && first.number <= 1 && first.loss.value > 1.5 * std::log(*vocab_)) {
      Add("log.first_loss", PreflightVerdict::kWarn,
          Both("the first loss {} is far above ln(vocabulary) = {:.3g}, which guessing gives",
               "第 1 步 loss {} 远高于随机猜测的 ln(词表) = {:.3g}", PyRepr(first.loss.value), std::log(*vocab_)),
          Both("check labels, mask and the initialisation", "检查 labels、mask 与初始化"));
    }
    const bool zero = std::any_of(log.steps.begin(), log.steps.end(), [](const LoggedStep& step) {
      return step.gradient_norm && step.gradient_norm->value == 0;
    });
    if (zero) {
      Add("log.gradient", PreflightVerdict::kWarn, Both("the gradient norm is 0 at a step", "某一步梯度范数为 0"),
          Both("check that the loss depends on the weights", "确认 loss 与权重相关"));
    }
    LookForSpike(log);
    if (before == out_->findings.size()) {
      Add("log", PreflightVerdict::kPass,
          Both("{} steps are finite and without a jump", "{} 步均有限且无突变", log.steps.size()));
    }
  }

  void LookForSpike(const TrainingLog& log) {
    for (size_t i = 8; i < log.steps.size(); ++i) {
      double mean = 0;
      for (size_t j = i - 8; j < i; ++j) mean += log.steps[j].loss.value / 8;
      if (!(log.steps[i].loss.value > 1.5 * mean + 0.5)) continue;
      Add("log.jump", PreflightVerdict::kWarn,
          Both("the loss jumps from about {:.4g} to {:.4g} at step {}", "loss 在第 {2} 步从约 {0:.4g} 跳到 {1:.4g}",
               mean, log.steps[i].loss.value, log.steps[i].number),
          Both("look at the batch of that step", "检查该步的数据"));
      return;
    }
  }

  Status LookAtDumps() {
    const RunFiles& run = out_->run;
    for (const RunDump& dump : run.dumps) {
      const std::string path =
          dump.steps.front() < 0 ? dump.path : JoinPath(dump.path, "step" + std::to_string(dump.steps.front()));
      const auto report = FindOverflow(path);
      if (!report.ok()) {
        if (report.status().code() != Code::kBadInput) return report.status();
        Add("dump.readable", PreflightVerdict::kWarn, Both(report.status().text()));
        continue;
      }
      const Story story = StoryOf(*report);
      const BothWords text{StoryHeadline(story, Language::kEnglish), StoryHeadline(story, Language::kChinese)};
      Add("dump.overflow",
          report->first.empty() ? PreflightVerdict::kPass
          : story.Harmless()    ? PreflightVerdict::kWarn
                                : PreflightVerdict::kFail,
          text);
    }
    return OkStatus();
  }

  PreflightReport* out_;
  std::optional<double> vocab_;
};

std::string_view PreflightName(PreflightVerdict verdict) {
  switch (verdict) {
    case PreflightVerdict::kPass: return "pass";
    case PreflightVerdict::kWarn: return "warn";
    case PreflightVerdict::kFail: return "fail";
  }
  return "";
}

}  // namespace

size_t PreflightReport::Count(PreflightVerdict verdict) const {
  return static_cast<size_t>(
      std::count_if(findings.begin(), findings.end(), [&](const auto& f) { return f.verdict == verdict; }));
}

StatusOr<PreflightReport> RunPreflight(const std::vector<std::string>& paths, const std::string& output, Language) {
  PreflightReport out;
  MSP_ASSIGN_OR_RETURN(out.run, FindRunFiles(paths));
  MSP_RETURN_IF_ERROR(Preflight(&out).Run());
  MSP_RETURN_IF_ERROR(MakeOutputDir(output));
  const std::string path = JoinPath(output, "msprobe_preflight.json");
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(PreflightJson(out)));
  MSP_RETURN_IF_ERROR(file.Commit());
  out.files.push_back(path);
  return out;
}

std::string PreflightText(const PreflightReport& report, Language language) {
  const bool zh = language == Language::kChinese;
  std::string out;
  for (const PreflightFinding& finding : report.findings) {
    out +=
        fmt::format("{:<6}{}: {}\n", PreflightName(finding.verdict), finding.check, OneLine(finding.text.In(language)));
    if (!finding.fix.empty()) out += "      -> " + OneLine(finding.fix.In(language)) + "\n";
  }
  for (const BothWords& what : report.not_seen)
    out += (zh ? "未看到  " : "not seen  ") + OneLine(what.In(language)) + "\n";
  for (const Message& note : report.run.notes)
    out += (zh ? "注意：" : "note: ") + OneLine(InLanguage(note, language)) + "\n";
  for (const std::string& file : report.files) out += InLanguage(Msg("  result: {}\n", OneLine(file)), language);
  return out;
}

std::string PreflightJson(const PreflightReport& report) {
  JsonWriter json({.indent = 2, .comma = ",", .ascii = false, .not_finite = JsonStyle::NotFinite::kNull});
  const auto words = [&](std::string_view key, const BothWords& text) {
    json.ObjectMember(key, [&] {
      json.Member("en", text.en);
      json.Member("zh", text.zh);
    });
  };
  json.BeginObject();
  json.Member("version", 1);
  json.Member("given", report.run.given);
  json.ObjectMember("verdicts", [&] {
    for (const PreflightVerdict verdict : {PreflightVerdict::kPass, PreflightVerdict::kWarn, PreflightVerdict::kFail})
      json.Member(PreflightName(verdict), report.Count(verdict));
  });
  json.ArrayMember("findings", report.findings, [&](const PreflightFinding& finding) {
    json.Object([&] {
      json.Member("check", finding.check);
      json.Member("verdict", PreflightName(finding.verdict));
      words("text", finding.text);
      words("fix", finding.fix);
    });
  });
  json.ArrayMember("not_seen", report.not_seen, [&](const BothWords& what) {
    json.Object([&] {
      json.Member("en", what.en);
      json.Member("zh", what.zh);
    });
  });
  json.Member("notes", report.run.notes);
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace msprobe
