// msprobe completion: what bash and zsh complete, and the page of man.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/context/register_commands.h"
#include "cli/help/completion.h"

namespace msprobe {

void RegisterCompletion(CLI::App& app, CommandContext* context) {
  CLI::App* command = app.add_subcommand("completion", "print what a shell completes, or the page of man");
  const auto kind = std::make_shared<std::string>();
  command->add_option("kind", *kind, "for which shell, or man")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "man"}));
  command->callback([&app, context, kind] {
    const std::string text = *kind == "man"   ? ManualPage(app)
                             : *kind == "zsh" ? ZshCompletion(app)
                                              : BashCompletion(app);
    std::fwrite(text.data(), 1, text.size(), stdout);
    context->status = OkStatus();
  });
}

}  // namespace msprobe
