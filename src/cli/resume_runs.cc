#include "cli/resume_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "certify/resume_verdict.h"
#include "certify/twice_report.h"
#include "cli/certificate_page.h"
#include "cli/first_ops.h"
#include "cli/launch/reference_program.h"
#include "json/parser.h"
#include "json/writer.h"
#include "report/summary.h"

namespace msprobe {
namespace {

using Program = std::vector<std::string>;

/// Statistics would hide that a value has moved by less than they show.
constexpr const char* kConfig =
    R"({"task": "statistics", "level": "mix", "rank": [], "step": [], "statistics": {"summary_mode": "md5"}})";

Status WriteFile(const std::string& path, std::string_view text) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(text));
  return file.Commit();
}

/// {dir} in every argument is the directory of that training.
Program InDirectory(const Program& program, const std::string& directory) {
  Program out;
  for (std::string argument : program) {
    for (size_t at = argument.find("{dir}"); at != std::string::npos; at = argument.find("{dir}", at)) {
      argument.replace(at, 5, directory);
      at += directory.size();
    }
    out.push_back(std::move(argument));
  }
  return out;
}

class Runs {
 public:
  Runs(AttachRequest request, std::string out, const WorkDir& work)
      : request_(std::move(request)), out_(std::move(out)), work_(work) {}

  AttachRequest& request() { return request_; }

  /// Runs the program in a role, with {dir} as `directory` below the output.
  Status Run(const std::string& role, const std::string& directory, const Program& program) {
    const std::string own = JoinPath(out_, directory);
    if (std::any_of(program.begin(), program.end(), [](const auto& a) { return a.find("{dir}") != a.npos; })) {
      if (role != "resumed") RemoveTree(own);
      MSP_RETURN_IF_ERROR(MakeOutputDir(own));
    }
    request_.role = role;
    request_.dump_path = JoinPath(out_, "dump_" + role);
    RemoveTree(request_.dump_path);
    MSP_ASSIGN_OR_RETURN(const int code, RunProgram(request_, InDirectory(program, own)));
    if (code == 0) return OkStatus();
    return BadInput(Msg("{} ended with exit code {} in the {} run: see its messages", program[0], code, role));
  }

  StatusOr<std::vector<std::string>> Ranks(const std::string& role) const { return work_.Results(role + "."); }

  Status Read(const std::string& role, const std::string& rank, JsonDoc* doc) const {
    MSP_ASSIGN_OR_RETURN(const MappedFile file,
                         MappedFile::Open(fmt::format("{}/{}.{}.json", work_.path(), role, rank)));
    return ParseJson(file.text(), file.path(), doc);
  }

  std::string dump(const std::string& role) const { return JoinPath(out_, "dump_" + role); }

 private:
  AttachRequest request_;
  std::string out_;
  const WorkDir& work_;
};

Status CheckSaves(const JsonValue& killed, int64_t save_at) {
  const JsonValue* saves = killed.Find("saves");
  if (saves == nullptr || !saves->IsArray() || saves->empty()) return OkStatus();  // in a way of its own
  int64_t last = 0;
  for (const JsonValue& save : saves->Items()) {
    const JsonValue* step = save.IsObject() ? save.Find("step") : nullptr;
    if (step == nullptr || !step->IsInt()) continue;
    if (step->Int() == save_at) return OkStatus();
    last = step->Int();
  }
  return BadInput(Msg("the script saved after {} steps and not after {}: --save-at {}", last, save_at, last));
}

/// After how many steps a role saved first; -1 where it saved nothing that was seen.
int64_t FirstSave(const Runs& runs, const std::string& role) {
  int64_t first = -1;
  const auto ranks = runs.Ranks(role);
  if (!ranks.ok()) return first;
  for (const std::string& rank : *ranks) {
    JsonDoc doc;
    if (!runs.Read(role, rank, &doc).ok()) continue;
    const JsonValue* saves = doc.Find("saves");
    if (saves == nullptr || !saves->IsArray() || saves->empty()) continue;
    const JsonValue* step = (*saves)[0].IsObject() ? (*saves)[0].Find("step") : nullptr;
    if (step != nullptr && step->IsInt() && (first < 0 || step->Int() < first)) first = step->Int();
  }
  return first;
}

/// The resumed run, which may have nothing to read.
Status RunResumed(Runs* runs, const Program& again, int save_at) {
  Status status = runs->Run("resumed", "resumed", again);
  const int64_t first = FirstSave(*runs, "straight");
  if (status.ok() || FirstSave(*runs, "killed") >= 0 || first <= save_at) return status;
  return BadInput(
      Msg("no checkpoint was written before the run was ended, at the beginning of step {}: the script saves first "
          "after {} steps: --save-at {}",
          save_at, first, first));
}

/// How many steps are done when the script saves first.
StatusOr<int> FindSave(Runs* runs, const std::string& work, const Program& program) {
  MSP_RETURN_IF_ERROR(runs->Run("scout", "scout", program));
  auto file = MappedFile::Open(JoinPath(work, "saved_after"));
  const int found = file.ok() ? std::atoi(std::string(file->text()).c_str()) : 0;
  if (found > 0) return found;
  return BadInput(
      Msg("the script saved nothing by torch.save() between two steps: let it save earlier than at its end, and where "
          "it saves in another way, say after how many steps: --save-at N"));
}

std::string ProgramText(const JsonValue& run, std::string_view key) {
  const JsonValue* versions = run.Find("versions");
  const JsonValue* v = versions != nullptr ? versions->Find(key) : nullptr;
  return v != nullptr && v->IsString() ? std::string(v->Text()) : "";
}

StatusOr<ResumeReport> JudgeRuns(const Runs& runs, int save_at) {
  ResumeReport report;
  report.save_at = save_at;
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> ranks, runs.Ranks("killed"));
  if (ranks.empty()) return BadInput(Msg("the command ran no step: it must call a PyTorch model"));
  bool saved = false;
  for (const std::string& rank : ranks) {
    JsonDoc straight, killed, resumed;
    MSP_RETURN_IF_ERROR(runs.Read("straight", rank, &straight));
    MSP_RETURN_IF_ERROR(runs.Read("killed", rank, &killed));
    if (!saved) MSP_RETURN_IF_ERROR(CheckSaves(killed, save_at));
    saved = true;  // other ranks need not save
    if (Status read = runs.Read("resumed", rank, &resumed); !read.ok()) {
      return BadInput(
          Msg("{} of the resumed run made no step: let the script train some steps more than it had done when it "
              "saved, and check --resume-args",
              rank));
    }
    MSP_ASSIGN_OR_RETURN(RankResume result, JudgeResume(rank, save_at, straight, killed, resumed));
    report.ranks.push_back(std::move(result));
    const JsonValue* loads = resumed.Find("loads");
    report.loaded = report.loaded || (loads != nullptr && loads->IsInt() && loads->Int() > 0);
    report.python = ProgramText(killed, "python");
    report.torch = ProgramText(killed, "torch");
  }
  // Ranks exchange gradients.
  const ResumeOutcome cause = report.CauseElsewhere();
  for (RankResume& rank : report.ranks) {
    if (cause != ResumeOutcome::kEqual && rank.outcome == ResumeOutcome::kUnexplained) {
      rank.outcome = ResumeOutcome::kThroughOther;
    }
  }
  return report;
}

Status NameOps(const Runs& runs, const std::string& out, ResumeReport* report) {
  const bool any = std::any_of(report->ranks.begin(), report->ranks.end(), [](const RankResume& r) {
    return r.outcome != ResumeOutcome::kEqual && r.outcome != ResumeOutcome::kNotReproducible;
  });
  // Of a step that was saved inside, the two dumps hold different parts.
  const bool inside = std::any_of(report->ranks.begin(), report->ranks.end(), [](auto& r) { return r.inside; });
  if (!any || inside) return OkStatus();
  MSP_ASSIGN_OR_RETURN(const auto ops, FirstOps(runs.dump("resumed"), runs.dump("straight"), JoinPath(out, "compare")));
  for (RankResume& rank : report->ranks) {
    const auto found = ops.find(rank.rank);
    if (found == ops.end()) continue;
    rank.noticed = DifferenceLine(found->second.difference).English();
    rank.noticed_step = report->save_at + found->second.step;
  }
  return OkStatus();
}

Status Start(AttachRequest* request, const std::string& out, const CommandContext& context,
             std::unique_ptr<WorkDir>* work) {
  MSP_RETURN_IF_ERROR(MakeOutputDir(out));
  MSP_ASSIGN_OR_RETURN(*work, WorkDir::Create(out));
  request->out = (*work)->path();
  request->dump_path = JoinPath(out, "dump");
  if (request->config.empty()) {
    request->config = JoinPath((*work)->path(), "config.json");
    MSP_RETURN_IF_ERROR(WriteFile(request->config, kConfig));
  }
  return CheckLaunch(request, context.program);
}

Status Finish(const std::string& out, const CommandContext& context, const std::string& json,
              const std::string& markdown, const ReportDocument& page, const Message& verdict) {
  MSP_RETURN_IF_ERROR(WriteFile(JoinPath(out, "certificate.json"), json));
  MSP_RETURN_IF_ERROR(WriteFile(JoinPath(out, "certificate.md"), markdown));
  MSP_RETURN_IF_ERROR(WriteDocument(page, JoinPath(out, "certificate.html")).status());
  if (context.json) {
    PrintJson(json);
  } else {
    PrintForPeople(verdict);
    PrintForPeople(Message(JoinPath(out, "certificate.md") + "\n"));
  }
  return OkStatus();
}

Status EndOf(JudgementKind kind, const CommandContext& context, const Message& verdict) {
  Judgement one;
  one.kind = kind;
  one.evidence.push_back(verdict);
  return StatusOf(Conclude({one}), context.fail_on, {FailOn::kBug, true}, verdict);
}

JudgementKind KindOfOutcome(ResumeOutcome outcome) {
  if (outcome <= ResumeOutcome::kFrameworkDraws) return JudgementKind::kBitEqual;
  return outcome == ResumeOutcome::kUndecided ? JudgementKind::kCannotSay : JudgementKind::kBug;
}

}  // namespace

Status CertifyResume(AttachRequest request, const ResumeArgs& args, const CommandContext& context) {
  MSP_ASSIGN_OR_RETURN(Program again, ShellWords(args.resume_command));
  MSP_ASSIGN_OR_RETURN(const Program more, ShellWords(args.resume_args));
  if (again.empty()) again = context.program;
  again.insert(again.end(), more.begin(), more.end());
  std::unique_ptr<WorkDir> work;
  request.mode = "resume";
  MSP_RETURN_IF_ERROR(Start(&request, args.out, context, &work));
  const std::string out = std::string(DirName(request.out));
  int save_at = request.save_at;
  Runs runs(std::move(request), out, *work);
  if (save_at == 0) {
    MSP_ASSIGN_OR_RETURN(save_at, FindSave(&runs, work->path(), context.program));
  }
  runs.request().save_at = save_at;
  MSP_RETURN_IF_ERROR(runs.Run("straight", "straight", context.program));
  MSP_RETURN_IF_ERROR(runs.Run("killed", "resumed", context.program));
  MSP_RETURN_IF_ERROR(RunResumed(&runs, again, save_at));
  MSP_ASSIGN_OR_RETURN(ResumeReport report, JudgeRuns(runs, save_at));
  report.command = ShellText(context.program);
  report.resume_command = ShellText(again);
  report.created = TimestampNow();
  MSP_RETURN_IF_ERROR(NameOps(runs, out, &report));
  const JudgementKind kind = KindOfOutcome(report.outcome());
  Message shown = kind == JudgementKind::kBitEqual ? Msg("{}\n", report.Verdict()) : Message();
  if (report.outcome() == ResumeOutcome::kLost && !report.loaded) {
    shown += Msg("the resumed run read nothing by torch.load(): check --resume-args\n");
  }
  for (const RankResume& rank : report.ranks) {
    if (rank.noticed.empty()) continue;
    shown += Msg("the first op that noticed, in step {} of {}: {}\n", rank.noticed_step, rank.rank, rank.noticed);
  }
  MSP_RETURN_IF_ERROR(Finish(args.out, context, report.Json(), report.Markdown(), ResumeDocument(report), shown));
  return EndOf(kind, context, report.Verdict());
}

Status CertifyTwice(AttachRequest request, const std::string& given, const CommandContext& context) {
  std::unique_ptr<WorkDir> work;
  request.mode = "certify";
  MSP_RETURN_IF_ERROR(Start(&request, given, context, &work));
  const std::string out = std::string(DirName(request.out));
  Runs runs(std::move(request), out, *work);
  for (const char* role : {"captured", "captured_again"}) MSP_RETURN_IF_ERROR(runs.Run(role, role, context.program));
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> ranks, runs.Ranks("captured"));
  if (ranks.empty()) return BadInput(Msg("the command ran no step: it must call a PyTorch model"));
  TwiceReport report;
  report.command = ShellText(context.program);
  report.created = TimestampNow();
  MSP_ASSIGN_OR_RETURN(const auto ops,
                       FirstOps(runs.dump("captured_again"), runs.dump("captured"), JoinPath(out, "compare")));
  for (const std::string& name : ranks) {
    JsonDoc first, second;
    MSP_RETURN_IF_ERROR(runs.Read("captured", name, &first));
    MSP_RETURN_IF_ERROR(runs.Read("captured_again", name, &second));
    RankTwice& rank = report.ranks.emplace_back();
    rank.rank = name;
    rank.difference = CompareDigests(first, second);
    const JsonValue* steps = first.Find("steps");
    rank.steps = steps != nullptr && steps->IsArray() ? static_cast<int64_t>(steps->size()) : 0;
    if (const auto op = ops.find(name); op != ops.end()) {
      rank.step = op->second.step;
      rank.kind = DifferenceKindText(op->second.difference.kind);
      rank.op = DifferenceLine(op->second.difference).English();
    }
  }
  const bool same = report.Repeats();
  MSP_RETURN_IF_ERROR(Finish(given, context, report.Json(), report.Markdown(), TwiceDocument(report),
                             same ? Msg("{}\n", report.Verdict()) : Message()));
  return EndOf(same ? JudgementKind::kBitEqual : JudgementKind::kBug, context, report.Verdict());
}

}  // namespace msprobe
