// msprobe run: the training command with capture attached.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/launch.h"

namespace msprobe {

void RegisterRun(CLI::App& app, CommandContext* context) {
  auto request = std::make_shared<AttachRequest>();
  CLI::App* command =
      app.add_subcommand("run", "run a training or inference command and record it, without changing its script");
  AddAttachOptions(command, request.get());
  command->add_option("--step", request->step, "steps to record, such as 0,3-5, instead of the configuration's");
  command->footer("Your command comes last: msprobe run --config config.json -- python train.py ARGUMENTS");
  command->callback([request, context] {
    context->status = CheckLaunch(request.get(), context->program);
    if (context->status.ok()) context->status = BecomeProgram(*request, context->program);
  });
}

}  // namespace msprobe
