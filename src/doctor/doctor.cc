#include "doctor/doctor.h"

#include "base/file.h"
#include "base/message.h"
#include "doctor/next_run.h"

namespace msprobe {
namespace {

Status WriteReport(const std::string& path, const std::string& text, std::vector<std::string>* files) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(text));
  MSP_RETURN_IF_ERROR(file.Commit());
  files->push_back(path);
  return OkStatus();
}

/// The next run is one of B in which this module gets the inputs that it got in A.
Status AskForGraft(const std::string& module, DoctorReport* report) {
  const DoctorEvidence& evidence = report->evidence;
  const auto first = FirstCommonStep(evidence.a, evidence.b);
  if (!first)
    return BadInput(Msg("--graft needs a step that both runs recorded: record one with task tensor, level mix"));
  const bool later = evidence.dumps.origin && evidence.dumps.origin->step > *first;
  const int step = later ? evidence.dumps.origin->step : *first;
  MSP_ASSIGN_OR_RETURN(const PreparedGraft graft, PrepareGraft(evidence.a, evidence.b, step, module, evidence.output));
  report->diagnosis.next = RunGraft(evidence, graft.config, step,
                                    Both("with the inputs of A, {} of B shows whether the module itself differs",
                                         "使用 A 的输入，可看出 B 的 {} 自身是否不同", graft.modules.front()));
  return OkStatus();
}

}  // namespace

StatusOr<DoctorReport> RunDoctor(const DoctorRequest& request) {
  DoctorReport out;
  DoctorEvidence& evidence = out.evidence;
  MSP_ASSIGN_OR_RETURN(evidence.a, FindRunFiles(request.a));
  MSP_ASSIGN_OR_RETURN(evidence.b, FindRunFiles(request.b));
  if (evidence.a.directory == evidence.b.directory) evidence.a.side = "_a", evidence.b.side = "_b";
  std::vector<RunFiles> again;
  for (const std::vector<std::string>& paths : request.again) {
    MSP_ASSIGN_OR_RETURN(RunFiles run, FindRunFiles(paths));
    again.push_back(std::move(run));
  }
  MSP_RETURN_IF_ERROR(MakeOutputDir(request.output));
  evidence.output = request.output;
  std::vector<std::string> unlisted;
  MSP_RETURN_IF_ERROR(WriteReport(RecordConfig(request.output), RecordConfigText(), &unlisted));
  MSP_ASSIGN_OR_RETURN(evidence.config, CompareConfigs(evidence.a, &evidence.b));
  const bool half = evidence.config.half || !evidence.config.known_precision;
  evidence.batches = CompareBatches(evidence.a, evidence.b);
  MSP_ASSIGN_OR_RETURN(evidence.weights, CompareCheckpoints(evidence.a, evidence.b));
  evidence.gradients = CompareGradients(evidence.a, evidence.b, half);
  evidence.curves = CompareCurves(evidence.a, evidence.b, again, half);
  evidence.frozen = CompareFrozenCurves(evidence.a, evidence.b, half);
  evidence.optimizer = CompareOptimizerRecords(evidence.a, evidence.b);
  MSP_ASSIGN_OR_RETURN(evidence.dumps, CompareRunDumps(evidence.a, evidence.b, request.output));
  evidence.graft = CompareGrafts(evidence.a, evidence.b, request.output);
  out.diagnosis = Diagnose(evidence);
  if (!request.graft.empty()) MSP_RETURN_IF_ERROR(AskForGraft(request.graft, &out));
  MSP_RETURN_IF_ERROR(WriteReport(JoinPath(request.output, "msprobe_doctor.json"), DoctorJson(out), &out.files));
  const std::string page = JoinPath(request.output, "msprobe_doctor.html");
  MSP_ASSIGN_OR_RETURN(const bool written, WriteDocument(DoctorDocument(out), page));
  if (written) out.files.push_back(page);
  return out;
}

}  // namespace msprobe
