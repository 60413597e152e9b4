#include "lab/acc_check.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "base/file.h"
#include "base/message.h"
#include "base/parallel.h"
#include "base/text.h"
#include "dump/reader.h"
#include "json/parser.h"
#include "lab/call_plan.h"
#include "lab/call_request.h"
#include "lab/check_pool.h"
#include "lab/check_process.h"
#include "lab/check_tables.h"
#include "lab/collective_calls.h"
#include "lab/judge.h"
#include "lab/output_handlers.h"
#include "lab/standards/ratios.h"

namespace msprobe {
namespace {

constexpr size_t kMostNamed = 100, kMostWorst = 20;

/// The lists of a config.json, and where data of failing calls goes.
struct CheckConfig {
  CallFilter filter;
  std::string error_data = "./";
  OutputHandlers handlers;
};

Status ReadNames(const JsonValue& section, const char* key, const std::string& path,
                 std::set<std::string, std::less<>>* out) {
  const JsonValue* names = section.Find(key);
  if (!names || names->IsNull()) return OkStatus();
  if (!names->IsArray()) return BadInput(Msg("{}: \"{}\" must be a list of names of functions", path, key));
  for (const JsonValue& name : names->Items()) {
    if (!name.IsString()) return BadInput(Msg("{}: \"{}\" must be a list of names of functions", path, key));
    out->emplace(name.Text());
  }
  return OkStatus();
}

Status ReadConfig(const std::string& path, CheckConfig* out) {
  if (path.empty()) return OkStatus();
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(file.text(), path, &doc));
  const JsonValue* section = doc.Find("acc_check");
  if (!section) section = doc.Find("run_ut");
  if (!section) return OkStatus();
  MSP_RETURN_IF_ERROR(ReadNames(*section, "white_list", path, &out->filter.white));
  MSP_RETURN_IF_ERROR(ReadNames(*section, "black_list", path, &out->filter.black));
  if (const JsonValue* handlers = section->Find("output_postprocess"); handlers && !handlers->IsNull()) {
    if (!handlers->IsString()) return BadInput(Msg("{}: \"output_postprocess\" must be a string, a path", path));
    MSP_ASSIGN_OR_RETURN(out->handlers, ReadOutputHandlers(std::string(handlers->Text())));
  }
  const JsonValue* folder = section->Find("error_data_path");
  if (!folder) return OkStatus();
  if (!folder->IsString()) return BadInput(Msg("{}: \"error_data_path\" must be a string, a path", path));
  out->error_data = folder->Text();
  return OkStatus();
}

bool Fails(const CheckedCall& call) {
  return WorseOf(call.forward, call.backward) == LabStatus::kError ||
         WorseOf(call.forward, call.backward) == LabStatus::kWarning;
}

/// The results of the dump itself are judged.
bool IsRecorded(const AccCheckSettings& settings) { return settings.devices.front() == kRecordedDevice; }

LabFramework FrameworkOf(const DumpFile& dump) {
  return dump.framework() == "mindspore" ? LabFramework::kMindSpore : LabFramework::kTorch;
}

class AccuracyCheck {
 public:
  AccuracyCheck(const AccCheckSettings& settings, const DumpFile& dump, const OutputHandlers& handlers,
                std::vector<PlannedCall> plan, AccCheckReport* report, CheckPool* pool)
      : settings_(settings),
        dump_(dump),
        handlers_(handlers),
        plan_(std::move(plan)),
        report_(report),
        framework_(FrameworkOf(dump)),
        pool_(pool ? pool : &own_.emplace(settings.devices, framework_, settings.processes)) {}

  /// A device that is not there is told before a table is made.
  Status Begin() {
    const bool communicates =
        std::any_of(plan_.begin(), plan_.end(), [](const PlannedCall& call) { return call.collective; });
    if (communicates && framework_ == LabFramework::kTorch) {
      MSP_RETURN_IF_ERROR(collectives_.emplace().Open(dump_));
    }
    MSP_ASSIGN_OR_RETURN(std::unique_ptr<CheckProcess> first, pool_->Take());
    report_->device = first->device();
    pool_->Give(std::move(first));
    return OkStatus();
  }

  Status Run(CheckTables* tables, const std::function<void(double)>& progress) {
    const auto make = [this](size_t i) { return Check(plan_[i]); };
    const auto take = [&](size_t i, CheckedCall&& call) {
      MSP_RETURN_IF_ERROR(tables->Add(call));
      Count(call);
      if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(plan_.size()));
      return OkStatus();
    };
    // Beside each process that makes a call there is one thread that judges the call before it.
    const auto threads = 2 * static_cast<size_t>(settings_.processes);
    MSP_RETURN_IF_ERROR(ParallelOrdered<CheckedCall>(plan_.size(), 2 * threads, make, take, threads));
    wrong_.insert(wrong_.end(), suspicious_.begin(), suspicious_.end());
    wrong_.resize(std::min(wrong_.size(), kMostNamed));
    report_->suspects = std::move(wrong_);
    return OkStatus();
  }

 private:
  StatusOr<CheckedCall> Check(const PlannedCall& call) {
    const bool collective = call.collective && collectives_;
    if (!call.skip.empty() && !collective) return SkippedCall(call.full, framework_, call.skip);
    const StatusOr<std::string> request =
        collective ? collectives_->Request(call) : CallRequest(dump_, call, IsRecorded(settings_), &handlers_);
    if (!request.ok()) {
      if (request.status().code() != Code::kBadInput) return request.status();
      return SkippedCall(call.full, framework_, request.status().message());
    }
    MSP_ASSIGN_OR_RETURN(std::unique_ptr<CheckProcess> process, pool_->Take());
    StatusOr<CallAnswer> answer = process->Call(*request);
    if (!answer.ok()) {
      pool_->Give(nullptr);
      return answer.status();
    }
    if (!report_->error_data.empty()) return JudgeAndSave(call, *std::move(answer), std::move(process));
    pool_->Give(std::move(process));
    return Judged(call, *std::move(answer));
  }

  CheckedCall Judged(const PlannedCall& call, CallAnswer&& answer) const {
    CheckedCall out =
        JudgeCall(call.full, call.api, call.backward.has_value(), framework_, settings_.release, std::move(answer));
    if (call.collective) JudgeByFloat64(&out);
    return out;
  }

  /// The process has the data of the call until the next one.
  StatusOr<CheckedCall> JudgeAndSave(const PlannedCall& call, CallAnswer&& answer,
                                     std::unique_ptr<CheckProcess> process) {
    CheckedCall out = Judged(call, std::move(answer));
    const Status saved = Fails(out) ? process->Save(report_->error_data, call.full) : OkStatus();
    if (!saved.ok()) process.reset();
    pool_->Give(std::move(process));
    MSP_RETURN_IF_ERROR(saved);
    return out;
  }

  /// Sorted by badness, as they come.
  void KeepWorst(const CheckedCall& call) {
    const auto before = [](const WorstCall& a, const WorstCall& b) {
      return a.verdict != b.verdict ? a.verdict > b.verdict : a.times > b.times;
    };
    const WorstCall found{call.full, *call.verdict, call.times};
    std::vector<WorstCall>& worst = report_->worst;
    worst.insert(std::upper_bound(worst.begin(), worst.end(), found, before), found);
    if (worst.size() > kMostWorst) worst.pop_back();
  }

  void Count(const CheckedCall& call) {
    if (call.verdict) {
      KeepWorst(call);
      ++report_->verdicts[static_cast<size_t>(*call.verdict)];
      report_->known += *call.verdict >= Float64Verdict::kSuspicious && call.known;
      const bool wrong = *call.verdict == Float64Verdict::kWrong;
      std::vector<std::string>& names = wrong ? wrong_ : suspicious_;
      if (*call.verdict >= Float64Verdict::kSuspicious && names.size() < kMostNamed) names.push_back(call.full);
    }
    const LabStatus worst = WorseOf(call.forward, call.backward);
    if (worst == LabStatus::kError) {
      ++report_->failed;
      if (report_->errors.size() < kMostNamed) report_->errors.push_back(call.full);
    } else if (worst == LabStatus::kWarning) {
      ++report_->warned;
    } else if (call.forward == LabStatus::kSkip) {
      ++report_->skipped;
    } else {
      ++report_->passed;
    }
  }

  const AccCheckSettings& settings_;
  const DumpFile& dump_;
  const OutputHandlers& handlers_;
  std::vector<PlannedCall> plan_;
  AccCheckReport* report_;
  LabFramework framework_;
  std::optional<CollectiveCalls> collectives_;
  std::optional<CheckPool> own_;
  CheckPool* pool_;
  std::vector<std::string> wrong_, suspicious_;  // calls
};

}  // namespace

StatusOr<AccCheckReport> CheckAccuracy(const AccCheckSettings& settings, const std::function<void(double)>& progress,
                                       CheckPool* pool) {
  AccCheckReport report;
  CheckConfig config;
  MSP_RETURN_IF_ERROR(ReadConfig(settings.config, &config));
  MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(settings.dump));
  if (!dump.framework().empty() && dump.framework() != "pytorch" && dump.framework() != "mindspore")
    return BadInput(Msg("{} is a dump of {}: acc_check calls functions of PyTorch and MindSpore", settings.dump,
                        OneLine(dump.framework())));
  if (IsRecorded(settings) && dump.framework() == "mindspore")
    return UsageError(Msg("-d recorded is for dumps of PyTorch: leave it out, so that the calls are made again"));
  const bool handled = !config.handlers.target.empty() || !config.handlers.golden.empty();
  if (handled && (IsRecorded(settings) || dump.framework() == "mindspore"))
    return UsageError(
        Msg("output_postprocess is for calls of PyTorch that are made again: leave it out of {}", settings.config));
  report.truncated = dump.truncated();
  CheckTables tables(FrameworkOf(dump) == LabFramework::kTorch ? CheckColumns() : MindSporeCheckColumns());
  if (!settings.resume.empty()) MSP_RETURN_IF_ERROR(tables.Continue(settings.resume, &config.filter.done));
  report.resumed = config.filter.done.size();
  config.filter.once = settings.once;
  MSP_ASSIGN_OR_RETURN(std::vector<PlannedCall> plan, PlanCalls(dump, config.filter));
  AccuracyCheck check(settings, dump, config.handlers, std::move(plan), &report, pool);
  MSP_RETURN_IF_ERROR(check.Begin());
  if (settings.resume.empty()) MSP_RETURN_IF_ERROR(tables.Create(settings.output));
  if (settings.save_error_data) {
    report.error_data = JoinPath(config.error_data, "ut_error_data" + tables.time());
    MSP_RETURN_IF_ERROR(MakeOutputDir(report.error_data));
  }
  report.result = tables.result(), report.details = tables.details(), report.float64 = tables.float64();
  if (2 * settings.processes > ThreadCount()) SetThreadCount(2 * settings.processes);
  MSP_RETURN_IF_ERROR(check.Run(&tables, progress));
  return report;
}

}  // namespace msprobe
