#include "doctor/doctor_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/message.h"
#include "base/text.h"

namespace msprobe {
namespace {

/// What of the recordings was not there to be seen: it comes before all that is concluded.
std::string NotWholeText(const DumpEvidence& dumps, Language language) {
  std::string out = GapText(dumps.gaps, language);
  const bool chinese = language == Language::kChinese;
  if (dumps.unread > 0) {
    if (!out.empty()) out += chinese ? "；" : "; ";
    out += fmt::format(fmt::runtime(chinese ? "{} 行没有 tensor" : "{} rows had no tensor"), dumps.unread);
  }
  return out.empty() ? out : out + (chinese ? "。" : ". ");
}

BothWords AnswerOf(const DoctorReport& report) {
  const Diagnosis& d = report.diagnosis;
  const std::string en = d.stage ? TitleOf(StageOfId(*d.stage), Language::kEnglish) : "";
  const std::string zh = d.stage ? TitleOf(StageOfId(*d.stage), Language::kChinese) : "";
  switch (d.outcome) {
    case Diagnosis::Outcome::kAgree:
      return Both("The runs agree in all that was seen.", "在看到的范围内两次运行一致。");
    case Diagnosis::Outcome::kRounding:
      return Both("The runs differ by no more than rounding explains, in all that was seen.",
                  "在看到的范围内，两次运行的差异均可由舍入解释。");
    case Diagnosis::Outcome::kUndecided:
      if (!d.stage && !report.evidence.dumps.whole) {
        return Both("Not decided: not all of the recordings could be seen.", "尚不能判断：未能看到全部采集数据。");
      }
      return d.stage ? BothWords{"Not decided: from stage \"" + en + "\" on, rounding or a cause may be at work.",
                                 "尚不能判断：从“" + zh + "”阶段起，可能是舍入，也可能另有原因。"}
                     : Both("Not decided: what was given does not show what the runs did.",
                            "尚不能判断：给出的文件未显示两次运行的行为。");
    case Diagnosis::Outcome::kParted: break;
  }
  std::string step, step_zh;
  if (d.step >= 0) {
    step = fmt::format(", step {}", StepNumber(report.evidence, d.step));
    step_zh = fmt::format("第 {} 步", StepNumber(report.evidence, d.step));
    if (report.evidence.dumps.seen) {  // whose verdict names steps, too, and counts them from 0
      step += fmt::format(" (step {} of the dumps)", d.step);
      step_zh += fmt::format("，即 dump 的 step {}", d.step);
    }
    step_zh = "（" + step_zh + "）";
  }
  return {"The runs part at stage \"" + en + "\"" + step + ".", "两次运行在“" + zh + "”阶段" + step_zh + "分叉。"};
}

}  // namespace

StateWords VerdictWords(StageVerdict verdict) {
  switch (verdict) {
    case StageVerdict::kNotSeen: return {"not seen", "未看到"};
    case StageVerdict::kPass: return {"pass", "一致"};
    case StageVerdict::kUnsure: return {"cannot say", "无法判断"};
    case StageVerdict::kDiffers: return {"differs", "不同"};
  }
  return {};
}

bool IsOffered(const Diagnosis& d, const StageResult& result) {
  const bool open =
      d.outcome == Diagnosis::Outcome::kUndecided || (d.outcome == Diagnosis::Outcome::kParted && !d.exact);
  return open && result.verdict == StageVerdict::kNotSeen && result.offer && !result.offer->commands.empty() &&
         !(d.next && d.next->commands == result.offer->commands);
}

const DoctorStage& StageOfId(StageId id) { return DoctorStages()[static_cast<size_t>(id)]; }

std::string TitleOf(const DoctorStage& stage, Language language) {
  return std::string(language == Language::kChinese ? stage.zh : stage.en);
}

BothWords HeadlineOf(const DoctorReport& report) {
  const BothWords answer = AnswerOf(report);
  const DumpEvidence& dumps = report.evidence.dumps;
  return {NotWholeText(dumps, Language::kEnglish) + answer.en, NotWholeText(dumps, Language::kChinese) + answer.zh};
}

std::string FilesLine(const RunFiles& run, Language language) {
  std::vector<std::string> parts;
  const auto add = [&](size_t count, std::string_view en, std::string_view zh) {
    if (count > 0) parts.push_back(fmt::format("{} {}", count, language == Language::kChinese ? zh : en));
  };
  add(run.configs.size(), "configurations", "个配置");
  add(run.logs.size(), "logs", "个日志");
  add(run.checkpoints.size(), "checkpoints", "个权重文件");
  add(run.batches.size(), "saved batches", "步数据");
  add(run.gradients.size(), "saved gradients", "步梯度");
  size_t steps = 0;
  for (const RunDump& dump : run.dumps) steps += dump.steps.size();
  add(steps, "recorded steps", "步 dump");
  add(run.grafts.size(), "recordings with inputs of A", "份使用 A 输入的 dump");
  add(run.optimizer_records.size(), "records of the optimizer", "份优化器记录");
  return OneLine(run.given.front()) + ": " + fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace msprobe
