// msprobe serve DIR: the page over the .vis.db files (and the .vis texts of earlier releases) below DIR.
#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/message.h"
#include "base/text.h"
#include "base/words/translate.h"
#include "cli/context/register_commands.h"
#include "dump/reader.h"
#include "json/writer.h"
#include "serve/server.h"
#include "serve/token.h"
#include "view/query/viewer.h"

extern char** environ;

namespace msprobe {
namespace {

constexpr uint16_t kUsualPort = 6006;

struct ServeArgs {
  std::string directory, token_file;
  int port = -1;  // not given
  bool open = false, no_convert = false;
};

/// Whether the page is asked for over ssh, where no browser of this machine is of use; then what the user's own machine
/// has to run for the address to be right there.
Message TunnelText(uint16_t port) {
  const char* connection = std::getenv("SSH_CONNECTION");
  if (connection == nullptr) return {};
  const std::vector<std::string_view> parts = Split(connection, ' ');  // client, its port, server, its port
  const std::string host = parts.size() == 4 && !parts[2].empty() ? std::string(parts[2]) : "HOST";
  return Msg("On your own machine: ssh -L {}:127.0.0.1:{} {}\n", port, port, host);
}

// Without a shell, so nothing in the address is interpreted.
void OpenBrowser(std::string url) {
  char program[] = "xdg-open";
  char* argv[] = {program, url.data(), nullptr};
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, program, &quiet, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&quiet);
  if (error != 0) {
    PrintWarning(Msg("cannot start xdg-open ({}): open the address yourself", KnownText(std::strerror(error))));
  }
}

void Announce(const serve::Server& server, const ServeArgs& args, bool json) {
  if (json) {
    JsonWriter line(kJsonCompact);
    line.BeginObject();
    line.Member("url", server.url());
    line.Member("port", server.port());
    line.Member("token", server.token());
    line.EndObject();
    fmt::print("{}\n", line.Take());
  } else {
    PrintForPeople(Msg("Serving {} at {}\n", args.directory, server.url()));
    PrintForPeople(TunnelText(server.port()));
    if (ResolveDumpPath(args.directory).ok())
      PrintWarning(Msg("{} holds dumps, which are no graphs yet: msprobe graph_visualize {} -o graph", args.directory,
                       args.directory));
    std::fputs(InLanguage(Msg("Press Ctrl-C to stop.\n"), LocaleLanguage()).c_str(), stderr);
  }
  std::fflush(stdout);
}

StatusOr<std::unique_ptr<serve::Server>> StartServer(const ServeArgs& args) {
  serve::ServerOptions options;
  // Also when the file at that path was replaced meanwhile, this is the same msprobe.
  if (!args.no_convert) options.converter = "/proc/self/exe";
  options.port = args.port < 0 ? kUsualPort : static_cast<uint16_t>(args.port);
  if (!args.token_file.empty()) {
    MSP_ASSIGN_OR_RETURN(options.token, serve::TokenOfFile(args.token_file));
  }
  MSP_ASSIGN_OR_RETURN(auto viewer, view::Viewer::Open(args.directory));
  auto server = serve::Server::Start(std::move(viewer), options);
  if (server.ok() || args.port >= 0) return server;
  // The usual port is a convenience; another server on it is no reason to give up.
  options.port = 0;
  MSP_ASSIGN_OR_RETURN(auto again, view::Viewer::Open(args.directory));
  return serve::Server::Start(std::move(again), options);
}

Status RunServe(const ServeArgs& args, bool json) {
  MSP_ASSIGN_OR_RETURN(auto server, StartServer(args));
  Announce(*server, args, json);
  if (args.open && std::getenv("SSH_CONNECTION") == nullptr) OpenBrowser(server->url());
  return server->Run();
}

}  // namespace

void RegisterServe(CLI::App& app, CommandContext* context) {
  auto args = std::make_shared<ServeArgs>();
  CLI::App* cmd = app.add_subcommand(
      "serve", "show graphs, reports, dumps, monitored runs and trends below a directory in a browser");
  cmd->add_option("directory", args->directory, "directory with .vis.db files, or one such file")->required();
  cmd->add_option("--port", args->port,
                  "port on 127.0.0.1; 0 for a free one (default: 6006, or a free one when it is taken)")
      ->check(CLI::Range(0, 65535));
  cmd->add_option(
      "--token-file", args->token_file,
      "file with the token of the address, made if it is not there: with --port the address stays the same");
  cmd->add_flag("--open", args->open, "open the page in the browser");
  cmd->add_flag("--no_convert,--no-convert", args->no_convert, "do not offer conversion of dumps in the page")
      ->envname("MSPROBE_NO_CONVERT");
  cmd->add_flag("--json", context->json, "print the address as one JSON object");
  cmd->callback([args, context] { context->status = RunServe(*args, context->json); });
}

}  // namespace msprobe
