// msprobe parity: one step on N ranks against the same step on one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "cli/context/fail_on.h"
#include "cli/context/register_commands.h"
#include "cli/launch/launch.h"
#include "cli/launch/reference_program.h"
#include "parity/certificate.h"

namespace msprobe {
namespace {

struct ParityArgs {
  AttachRequest request;
  std::string out, reference;
  std::vector<std::string> set;
  bool laws = false, keep = false;
};

/// Without known axes: ranks with one batch share a model, others share the data.
void NameRanks(ParityRun* run) {
  if (run->size() < 2 || !run->front().axes.empty()) return;
  bool same = true;
  const ParityPhase& first = run->front().phase(0, "input");
  for (const ParityRank& rank : *run) {
    for (const ParityEntry& entry : first.entries) {
      const ParityEntry* other = rank.phase(0, "input").Find(entry.name);
      same = same && other != nullptr && ElementsOf(entry) == ElementsOf(*other);
    }
  }
  std::vector<int> all;
  for (const ParityRank& rank : *run) all.push_back(rank.rank);
  for (ParityRank& rank : *run) rank.axes[same ? "tp" : "dp"] = all;
}

/// The ranks that have a batch of their own, in its order.
std::string RanksWithBatches(const ParityRun& run) {
  std::vector<std::pair<int, int>> found;
  for (const ParityRank& rank : run) {
    bool first = true;
    int replica = 0;
    for (const auto& [axis, group] : rank.axes) {
      const auto at = static_cast<int>(std::find(group.begin(), group.end(), rank.rank) - group.begin());
      axis == "dp" ? replica = at : first = first && at == 0;
    }
    if (first) found.emplace_back(replica, rank.rank);
  }
  std::sort(found.begin(), found.end());
  std::string out;
  for (const auto& [replica, rank] : found) out += (out.empty() ? "" : ",") + std::to_string(rank);
  return out;
}

Status RunAs(AttachRequest request, const std::string& role, const std::vector<std::string>& program) {
  request.role = role;
  MSP_ASSIGN_OR_RETURN(const int code, RunProgram(request, program));
  if (code == 0) return OkStatus();
  return BadInput(Msg("{} ended with exit code {} in the {} run: see its messages", program[0], code, role));
}

StatusOr<ParityRun> Recorded(const std::string& work, const std::string& role) {
  const std::string path = JoinPath(work, role);
  if (!IsDirectory(path)) return BadInput(Msg("the command ran no step: it must call a PyTorch model"));
  MSP_ASSIGN_OR_RETURN(ParityRun run, ReadParityRun(path));
  if (run.empty()) return BadInput(Msg("the command ran no step: it must call a PyTorch model"));
  return run;
}

Status RunReference(AttachRequest request, const std::vector<std::string>& program, const std::string& work,
                    ParityRuns* runs) {
  request.save_batches.clear();
  if (IsDirectory(JoinPath(work, "batches"))) {
    request.replay_batches = JoinPath(work, "batches");
    request.join_ranks = RanksWithBatches(runs->ranks);
  }
  request.weights_from = JoinPath(work, "ranks");
  request.layouts.clear();
  MSP_RETURN_IF_ERROR(RunAs(request, "reference", program));
  MSP_ASSIGN_OR_RETURN(runs->reference, Recorded(work, "reference"));
  if (runs->reference.size() > 1) {
    return UsageError(
        Msg("the reference ran on {} ranks: it has to be one rank; give --reference or --set", runs->reference.size()));
  }
  MSP_RETURN_IF_ERROR(RunAs(request, "rounded", program));
  MSP_ASSIGN_OR_RETURN(runs->rounded, Recorded(work, "rounded"));
  return OkStatus();
}

Status WriteWhole(const std::string& path, std::string_view text) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(text));
  return file.Commit();
}

Status Parity(ParityArgs args, const CommandContext& context) {
  std::vector<std::string> reference;
  if (!args.laws) {
    MSP_ASSIGN_OR_RETURN(reference, ReferenceProgram(context.program, args.reference, args.set));
  }
  MSP_RETURN_IF_ERROR(MakeOutputDir(args.out));
  MSP_ASSIGN_OR_RETURN(const auto work, WorkDir::Create(args.out));
  AttachRequest& request = args.request;
  request.mode = "parity";
  request.out = work->path();
  request.save_batches = JoinPath(work->path(), "batches");
  MSP_RETURN_IF_ERROR(CheckLaunch(&request, context.program));
  MSP_RETURN_IF_ERROR(RunAs(request, "ranks", context.program));
  ParityRuns runs;
  MSP_ASSIGN_OR_RETURN(runs.ranks, Recorded(request.out, "ranks"));
  NameRanks(&runs.ranks);
  if (static_cast<int>(runs.ranks.size()) != runs.ranks.front().world) {
    return BadInput(Msg("{} of {} ranks ran a step: each rank has to call a model and step an optimizer",
                        runs.ranks.size(), runs.ranks.front().world));
  }
  if (!args.laws) MSP_RETURN_IF_ERROR(RunReference(request, reference, request.out, &runs));
  ParityCertificate certificate;
  certificate.result = JudgeParity(runs);
  certificate.laws_only = args.laws;
  certificate.command = ShellText(context.program);
  certificate.reference_command = ShellText(reference);
  certificate.created = TimestampNow();
  certificate.Describe(runs);
  const std::string json = certificate.Json();
  MSP_RETURN_IF_ERROR(WriteWhole(JoinPath(args.out, "parity.json"), json));
  MSP_RETURN_IF_ERROR(WriteWhole(JoinPath(args.out, "parity.md"), certificate.Markdown()));
  if (context.json) {
    PrintJson(json);
  } else {
    PrintForPeople(certificate.Text());
    PrintForPeople(Message(JoinPath(args.out, "parity.md") + "\n"));
  }
  return StatusOf(Conclude(certificate.Judgements()), context.fail_on, {FailOn::kSuspicious, true},
                  certificate.Verdict());
}

}  // namespace

void RegisterParity(CLI::App& app, CommandContext* context) {
  auto args = std::make_shared<ParityArgs>();
  args->request.steps = 1;
  CLI::App* command = app.add_subcommand(
      "parity", "is a parallel layout right: one step on N ranks against the same step on one, through the optimizer");
  command->add_option("-o,--output_path", args->out, "directory for parity.md and parity.json")->required();
  command->add_option("--reference", args->reference,
                      "the whole command of the reference, on one rank; without it yours, with one process and every "
                      "parallel size 1");
  command->add_option("--set", args->set,
                      "an argument of your command that has another value in the reference, such as tp=1; may be given "
                      "several times");
  command->add_option("--layouts", args->request.layouts,
                      "sizes of the axes where they cannot be read, the one that varies fastest first, such as "
                      "tp=2,dp=2");
  command->add_option("--steps", args->request.steps, "steps to compare; the command is stopped after them")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--batches-from", args->request.batches_from,
                   "where batches are taken from: data loaders where there are any (auto), or the call of the model "
                   "and the variables around it")
      ->check(CLI::IsMember({"auto", "model"}));
  command->add_flag("--laws", args->laws,
                    "no reference: only what has to hold between the ranks, such as replicas that are equal");
  command->add_flag("--json", context->json, "print the certificate as JSON");
  AddFailOn(command, context);
  command->footer(
      "Your command comes last: msprobe parity -o DIR -- torchrun --nproc_per_node 4 train.py ARGUMENTS\n"
      "Exit code: 0 equal up to rounding, 1 not equal, 2 wrong options, 3 a command failed, 5 cannot say.");
  command->callback([args, context] {
    args->request.prints_to_stderr = context->json;
    context->status = Parity(*args, *context);
  });
}

}  // namespace msprobe
