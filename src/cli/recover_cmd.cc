// msprobe recover DIR: finishes the files of a run that was killed.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/message.h"
#include "cli/context/register_commands.h"
#include "dump/repair/recover.h"

namespace msprobe {
namespace {

Status Run(const RecoverSettings& settings, bool as_json) {
  MSP_ASSIGN_OR_RETURN(const std::vector<RankRecovery> ranks, RecoverDump(settings));
  as_json ? PrintJson(RecoveryJson(ranks) + "\n") : PrintForPeople(RecoveryText(ranks));
  const auto bad = std::count_if(ranks.begin(), ranks.end(), [](const RankRecovery& r) { return !r.complete(); });
  if (bad == 0) return OkStatus();
  return BadInput(
      Msg("{} of {} directories could not be finished, or lack data that was reported as written: see above", bad,
          ranks.size()));
}

}  // namespace

void RegisterRecover(CLI::App& app, CommandContext* context) {
  auto settings = std::make_shared<RecoverSettings>();
  CLI::App* cmd =
      app.add_subcommand("recover", "finish the files of a run that was killed, so that every tool reads them");
  cmd->add_option("directory", settings->path, "a dump, or one of its steps or ranks")->required();
  cmd->add_option("-o,--output_path", settings->output,
                  "write finished copies there and leave the originals as they are");
  cmd->add_flag("--force", settings->force, "also where a process on a different host wrote recently");
  cmd->add_flag("--json", context->json, "print what was done as one JSON object");
  cmd->footer("Exit code: 0 nothing is missing, 2 wrong options, 3 something is missing or could not be finished.");
  cmd->callback([settings, context] { context->status = Run(*settings, context->json); });
}

}  // namespace msprobe
