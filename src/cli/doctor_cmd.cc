// msprobe doctor, msprobe preflight: where two trainings part; what one of them says before it runs long.
#include <CLI/CLI.hpp>
#include <memory>

#include "base/language.h"
#include "base/message.h"
#include "base/text.h"
#include "cli/context/fail_on.h"
#include "cli/context/register_commands.h"
#include "doctor/doctor.h"
#include "doctor/preflight.h"

namespace msprobe {
namespace {

struct DoctorArguments {
  std::string a, b, output, graft;
  std::vector<std::string> more_a, more_b, again;
};

std::vector<std::string> PathsOf(const std::string& first, const std::vector<std::string>& more) {
  std::vector<std::string> out{first};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

Status RunDoctorCommand(const DoctorArguments& args, const CommandContext& context) {
  DoctorRequest request{PathsOf(args.a, args.more_a), PathsOf(args.b, args.more_b), {}, args.output, args.graft};
  for (const std::string& path : args.again) request.again.push_back({path});
  MSP_ASSIGN_OR_RETURN(const DoctorReport report, RunDoctor(request));
  context.json ? PrintJson(DoctorJson(report)) : PrintForPeople(Message(DoctorText(report, LocaleLanguage())));
  const Conclusion conclusion = Conclude(JudgementsOf(report.diagnosis, LanguageFor(context)));
  return StatusOf(conclusion, context.fail_on, {FailOn::kSuspicious, true}, Msg("the runs part"));
}

Status RunPreflightCommand(const DoctorArguments& args, bool as_json) {
  MSP_ASSIGN_OR_RETURN(const PreflightReport report,
                       RunPreflight(PathsOf(args.a, args.more_a), args.output, LocaleLanguage()));
  as_json ? PrintJson(PreflightJson(report)) : PrintForPeople(Message(PreflightText(report, LocaleLanguage())));
  if (report.Count(PreflightVerdict::kFail) > 0) return {Code::kFindings, Msg("the run is not ready")};
  return OkStatus();
}

}  // namespace

void RegisterDoctor(CLI::App& app, CommandContext* context) {
  auto args = std::make_shared<DoctorArguments>();
  CLI::App* doctor =
      app.add_subcommand("doctor", "say at which stage two trainings part and why, from whatever is left of them");
  doctor->add_option("a", args->a, "directory or file of the reference")->required();
  doctor->add_option("b", args->b, "directory or file of the run in question");
  doctor->add_option("--also-a", args->more_a, "further directories or files of the reference");
  doctor->add_option("--also-b", args->more_b, "further directories or files of the run in question");
  doctor->add_option("--again", args->again, "directory or log of a further run of the reference, for its own error");
  doctor->add_option(
      "--graft", args->graft,
      "prepare a run of B in which this module gets the inputs that it got in A: does the module differ, "
      "or only what it gets?");
  doctor->add_option("-o,--output", args->output, "directory of the result")->default_val("./msprobe_doctor");
  doctor->add_flag("--json", context->json, "print the report as one JSON object");
  AddFailOn(doctor, context);
  doctor->footer(
      "Exit code: 0 they agree or differ by rounding, 1 they part, 2 wrong options, 3 not readable, 5 not decided.");
  doctor->callback([args, context] {
    context->status = args->b.empty() ? UsageError(Msg("doctor compares two runs: give the reference and the run in "
                                                       "question. One run by itself: msprobe preflight {}",
                                                       OneLine(args->a)))
                                      : RunDoctorCommand(*args, *context);
  });
}

void RegisterPreflight(CLI::App& app, CommandContext* context) {
  auto one = std::make_shared<DoctorArguments>();
  CLI::App* preflight =
      app.add_subcommand("preflight", "say what is wrong with one training before it runs long, from what is there");
  preflight->add_option("run", one->a, "directory or file of the run")->required();
  preflight->add_option("--also", one->more_a, "further directories or files");
  preflight->add_option("-o,--output", one->output, "directory of the result")->default_val("./msprobe_preflight");
  preflight->add_flag("--json", context->json, "print the report as one JSON object");
  preflight->footer("Exit code: 0 nothing fails, 1 something does, 2 wrong options, 3 not readable.");
  preflight->callback([one, context] { context->status = RunPreflightCommand(*one, context->json); });
}

}  // namespace msprobe
