// msprobe run: the training command with capture attached.
#include <CLI/CLI.hpp>
#include <memory>

#include "base/file.h"
#include "base/message.h"
#include "cli/context/register_commands.h"
#include "cli/launch/launch.h"
#include "weights/map_file.h"

namespace msprobe {
namespace {

void AddExchangeOptions(CLI::App* command, AttachRequest* request) {
  command->add_option("--save-batches", request->save_batches,
                      "save the batch of each step here, as step_N/rank_R/batch.safetensors");
  command->add_option("--save-grads", request->save_grads,
                      "save the gradients that the optimizer gets in each step here, with a table of local norms");
  command->add_option("--save-optimizer", request->save_optimizer,
                      "record here what the optimizers are given and make of it in the first three steps, or in those "
                      "of --step, for 'msprobe optimizer_replay'");
  command->add_option("--replay-batches", request->replay_batches,
                      "give the script the batches saved here, or .npy files below step_N/rank_R");
  command->add_option("--replay-grads", request->replay_grads, "give the optimizer the gradients saved here");
  command
      ->add_option("--batches-from", request->batches_from,
                   "where batches are taken from: data loaders where there are any (auto), or the call of the model "
                   "and the variables around it")
      ->check(CLI::IsMember({"auto", "model"}));
  command->add_option("--names", request->names,
                      "which saved name (a) is which in the script (b): a file as 'msprobe ckpt compare --map-out' "
                      "writes it");
  command
      ->add_option("--loss-scale", request->loss_scale,
                   "by which the script itself multiplies its loss: divided out of norms (a GradScaler needs none)")
      ->check(CLI::PositiveNumber);
}

Status CheckExchange(const AttachRequest& request) {
  for (const std::string& path : {request.replay_batches, request.replay_grads}) {
    if (path.empty() || IsDirectory(path)) continue;
    return BadInput(Msg("{} is no directory: give the one that --save-batches or --save-grads wrote", path));
  }
  if (!request.names.empty()) return ReadMapFile(request.names).status();
  return OkStatus();
}

}  // namespace

void RegisterRun(CLI::App& app, CommandContext* context) {
  auto request = std::make_shared<AttachRequest>();
  CLI::App* command =
      app.add_subcommand("run", "run a training or inference command and record it, without changing its script");
  AddAttachOptions(command, request.get());
  command->add_option("--step", request->step, "steps to record, such as 0,3-5, instead of the configuration's");
  AddExchangeOptions(command, request.get());
  command->footer("Your command comes last: msprobe run --config config.json -- python train.py ARGUMENTS");
  command->callback([request, context] {
    context->status = CheckExchange(*request);
    if (context->status.ok()) context->status = CheckLaunch(request.get(), context->program);
    if (context->status.ok()) context->status = BecomeProgram(*request, context->program);
  });
}

}  // namespace msprobe
