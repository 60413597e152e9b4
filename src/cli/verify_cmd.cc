// msprobe verify-dump DIR: whether a dump is whole.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "base/message.h"
#include "cli/context/register_commands.h"
#include "dump/repair/verify.h"

namespace msprobe {
namespace {

Status Run(const std::string& path, bool as_json) {
  MSP_ASSIGN_OR_RETURN(const DumpCheck check, VerifyDump(path));
  as_json ? PrintJson(CheckJson(check) + "\n") : PrintForPeople(CheckText(check));
  if (!check.readable()) return BadInput(Msg("not every dump below {} can be read: see above", path));
  const uint64_t count = check.count();
  if (count == 0) return OkStatus();
  return {Code::kFindings, count == 1 ? Msg("{} finding", count) : Msg("{} findings", count)};
}

}  // namespace

void RegisterVerifyDump(CLI::App& app, CommandContext* context) {
  auto path = std::make_shared<std::string>();
  CLI::App* cmd = app.add_subcommand("verify-dump",
                                     "check that a dump is complete: counts, gaps, truncated files, missing tensors");
  cmd->add_option("directory", *path, "a dump, or one of its steps or ranks")->required();
  cmd->add_flag("--json", context->json, "print the result as one JSON object");
  cmd->footer(
      "Exit code: 0 complete, 1 findings, 2 wrong options, 3 not readable. 'msprobe recover' finishes truncated "
      "files.");
  cmd->callback([path, context] { context->status = Run(*path, context->json); });
}

}  // namespace msprobe
