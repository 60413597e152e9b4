// msprobe certify: proof that capture does not change a run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <memory>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "certify/certificate.h"
#include "cli/certificate_page.h"
#include "cli/context/fail_on.h"
#include "cli/context/register_commands.h"
#include "cli/launch/launch.h"
#include "cli/resume_runs.h"
#include "dump/reader.h"
#include "dump/repair/certificate_check.h"
#include "json/parser.h"
#include "tensor/kernels/crc32.h"
#include "tensor/kernels/stats.h"

namespace msprobe {
namespace {

constexpr std::array<const char*, 3> kRoles{"bare", "bare_again", "captured"};

std::string TextMember(const JsonValue& doc, std::string_view key) {
  const JsonValue* v = doc.Find(key);
  return v != nullptr && v->IsString() ? std::string(v->Text()) : std::string();
}

Status RunRoles(AttachRequest request, const std::vector<std::string>& program) {
  for (const char* role : kRoles) {
    request.role = role;
    MSP_ASSIGN_OR_RETURN(const int code, RunProgram(request, program));
    if (code != 0) {
      return BadInput(Msg("{} ended with exit code {} in the {} run: see its messages", program[0], code, role));
    }
  }
  return OkStatus();
}

Status ReadDigests(const WorkDir& work, const std::string& role, const std::string& rank, JsonDoc* doc) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(fmt::format("{}/{}.{}.json", work.path(), role, rank)));
  return ParseJson(file.text(), file.path(), doc);
}

void Describe(const JsonValue& captured, Certificate* certificate) {
  certificate->dump_path = TextMember(captured, "dump_path");
  const JsonValue *versions = captured.Find("versions"), *devices = captured.Find("devices");
  if (versions != nullptr) {
    certificate->python = TextMember(*versions, "python");
    certificate->torch = TextMember(*versions, "torch");
  }
  if (devices == nullptr || !devices->IsArray()) return;
  certificate->devices.clear();
  for (const JsonValue& device : devices->Items()) {
    if (!device.IsString()) continue;
    if (!certificate->devices.empty()) certificate->devices += ", ";
    certificate->devices += device.Text();
  }
}

StatusOr<Certificate> CompareRoles(const WorkDir& work) {
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> ranks, work.Results("captured."));
  if (ranks.empty()) return BadInput(Msg("the command ran no step: it must call a PyTorch model"));
  Certificate certificate;
  for (const std::string& rank : ranks) {
    JsonDoc bare, again, captured;
    MSP_RETURN_IF_ERROR(ReadDigests(work, "bare", rank, &bare));
    MSP_RETURN_IF_ERROR(ReadDigests(work, "bare_again", rank, &again));
    MSP_RETURN_IF_ERROR(ReadDigests(work, "captured", rank, &captured));
    RankCertificate& result = certificate.ranks.emplace_back(DescribeRank(rank, bare, captured));
    result.between_bare = CompareDigests(bare, again);
    result.with_capture = CompareDigests(bare, captured);
    Describe(captured, &certificate);
  }
  return certificate;
}

/// The JSON files of the dump, so that a certificate is not taken for that of another dump.
std::vector<std::pair<std::string, uint32_t>> FilesOf(const std::string& dump_path) {
  std::vector<std::pair<std::string, uint32_t>> files;
  auto dump = ResolveDumpPath(dump_path);
  if (!dump.ok()) return files;
  for (const StepDir& step : dump->steps) {
    for (const RankDir& rank : step.ranks) {
      auto file = MappedFile::Open(JoinPath(rank.path, "dump.json"));
      if (!file.ok()) continue;
      files.emplace_back(step.name + "/" + rank.name + "/dump.json", Crc32(file->text().data(), file->text().size()));
    }
  }
  return files;
}

Status WriteWhole(const std::string& path, std::string_view text) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(text));
  return file.Commit();
}

Status Certify(AttachRequest request, const std::string& out, const CommandContext& context) {
  if (request.config.empty() && request.dump_path.empty()) request.dump_path = JoinPath(out, "dump");
  MSP_RETURN_IF_ERROR(CheckLaunch(&request, context.program));
  MSP_RETURN_IF_ERROR(MakeOutputDir(out));
  MSP_ASSIGN_OR_RETURN(const auto work, WorkDir::Create(out));
  request.out = work->path();
  if (request.out[0] != '/') MSP_RETURN_IF_ERROR(CheckLaunch(&request, context.program));  // makes it absolute
  MSP_RETURN_IF_ERROR(RunRoles(request, context.program));
  MSP_ASSIGN_OR_RETURN(Certificate certificate, CompareRoles(*work));
  certificate.command = ShellText(context.program);
  certificate.config = request.config;
  certificate.created = TimestampNow();
  const std::string json = certificate.Json(FilesOf(certificate.dump_path));
  MSP_RETURN_IF_ERROR(WriteWhole(JoinPath(out, "certificate.json"), json));
  MSP_RETURN_IF_ERROR(WriteWhole(JoinPath(out, "certificate.md"), certificate.Markdown()));
  MSP_RETURN_IF_ERROR(WriteDocument(CertificateDocument(certificate), JoinPath(out, "certificate.html")).status());
  if (IsDirectory(certificate.dump_path)) {
    MSP_RETURN_IF_ERROR(WriteWhole(JoinPath(certificate.dump_path, kCertificateName), json));
  }
  if (context.json) {
    PrintJson(json);
  } else {
    if (certificate.certified()) PrintForPeople(Msg("{}\n", certificate.Verdict()));
    PrintForPeople(Message(JoinPath(out, "certificate.md") + "\n"));
  }
  return StatusOf(Conclude(certificate.Judgements()), context.fail_on, {FailOn::kCannotSay, false},
                  certificate.Verdict());
}

}  // namespace

void RegisterCertify(CLI::App& app, CommandContext* context) {
  struct Args {
    AttachRequest request;
    ResumeArgs resume;
    bool resumes = false, twice = false;
  };
  auto args = std::make_shared<Args>();
  args->request.mode = "certify";
  args->request.steps = 3;
  CLI::App* command = app.add_subcommand(
      "certify", "prove that capture does not change a run: compare every bit of every step without and with it");
  AddAttachOptions(command, &args->request);
  command
      ->add_option("--steps", args->request.steps,
                   "steps to compare; the command is stopped after them (0: never stopped)")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("-o,--output_path", args->resume.out,
                   "directory for certificate.md and certificate.json, and for the dump unless one is configured")
      ->required();
  command->add_flag("--json", context->json, "print the certificate as JSON");
  AddFailOn(command, context);
  CLI::Option* twice = command->add_flag(
      "--twice", args->twice, "run twice with capture instead and name the first op that does not repeat itself");
  CLI::Option* resumes = command->add_flag("--resume", args->resumes,
                                           "train straight, and once more with a kill after the script has saved and a "
                                           "resume; name the state that was lost");
  resumes->excludes(twice);
  command
      ->add_option("--save-at", args->request.save_at,
                   "steps that are done when the script saves (without it, one more short run finds that)")
      ->check(CLI::Range(1, 1'000'000))
      ->needs(resumes);
  command
      ->add_option("--resume-args", args->resume.resume_args,
                   "what is added to your command to resume, such as \"--resume {dir}/last.pt\"; {dir} here and in "
                   "your command is a new directory for each training")
      ->needs(resumes);
  command->add_option("--resume-command", args->resume.resume_command, "a whole command that resumes, instead")
      ->needs(resumes);
  command->footer(
      "Your command comes last: msprobe certify --config config.json -o DIR -- python train.py ARGUMENTS\n"
      "Exit code: 0 certified, 1 not certified, 2 wrong options, 3 the command failed.");
  command->callback([args, context] {
    args->request.prints_to_stderr = context->json;
    if (args->resumes) {
      context->status = CertifyResume(args->request, args->resume, *context);
    } else if (args->twice) {
      context->status = CertifyTwice(args->request, args->resume.out, *context);
    } else {
      context->status = Certify(args->request, args->resume.out, *context);
    }
  });
}

}  // namespace msprobe
