#include "cli/commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/interrupt.h"
#include "base/message.h"
#include "base/parallel.h"
#include "base/temp_names.h"
#include "base/text.h"
#include "cli/context/register_commands.h"
#include "cli/earlier_commands.h"
#include "cli/help/help.h"
#include "cli/help/short_options.h"

namespace msprobe {
namespace {

struct Command {
  void (*add)(CLI::App& app, CommandContext* context);
  std::string_view name;
  bool runs_program;         // the user's own, behind "--"
  std::string_view earlier;  // its name in earlier releases
};
constexpr std::string_view OrNone(const char* text) { return text ? text : ""; }
constexpr std::array kCommands{
#define MSP_COMMAND(function, name, group, runs_program, earlier) \
  Command{Register##function, name, runs_program, OrNone(earlier)},
#include "cli/context/commands.def"
};

/// By its name of today or the earlier one.
const Command* CommandNamed(std::string_view name) {
  const auto is = [&](const Command& c) { return c.name == name || (!c.earlier.empty() && c.earlier == name); };
  const auto at = std::find_if(kCommands.begin(), kCommands.end(), is);
  return at == kCommands.end() ? nullptr : &*at;
}

/// A result file that got the number of a closed stderr would receive the error messages.
void OpenStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) (void)!open("/dev/null", O_RDWR);
  }
}

/// What was printed counts as a result, so a full disk behind stdout is an error; a reader that left is none.
Status FlushOutput() {
  const bool failed = std::ferror(stdout) != 0;
  errno = 0;
  if ((std::fflush(stdout) == 0 && !failed) || errno == EPIPE) return OkStatus();
  if (errno == 0) {
    return InternalError(Msg("cannot print the summary: redirect the output elsewhere; the results are written"));
  }
  return InternalError(Msg("cannot print the summary ({}): redirect the output elsewhere; the results are written",
                           KnownText(std::strerror(errno))));
}

int Report(Status status) {
  Status output = FlushOutput();
  if (status.ok()) status = std::move(output);
  if (!status.ok()) {
    const bool finding = status.code() == Code::kFindings || status.code() == Code::kUndecided;
    PrintMessage(finding ? "" : "[msprobe] error: ", status.text());
  }
  return static_cast<int>(status.code());
}

/// Position of the command's name, args.size() without one: the first argument that is not an option and no option's
/// value.
size_t FindCommand(const std::vector<std::string>& args) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "-f" || args[i] == "--framework") {
      ++i;
    } else if (!StartsWith(args[i], "-")) {
      return i;
    }
  }
  return args.size();
}

/// Of "run OPTIONS -- PROGRAM ARGUMENTS" everything behind the first "--", which belongs to the program.
std::vector<std::string> TakeProgram(std::vector<std::string>* args) {
  const auto dashes = std::find(args->begin(), args->end(), "--");
  if (dashes == args->end()) return {};
  std::vector<std::string> program(dashes + 1, args->end());
  args->erase(dashes, args->end());
  return program;
}

Status UnknownCommand(const std::string& name) {
  if (const auto instead = InsteadOfEarlier(name)) {
    return UsageError(Msg("msprobe does not have the command {} of mindstudio-probe: {}", name, KnownText(*instead)));
  }
  if (const auto whole = CommandOfWord(name)) {
    return UsageError(Msg("unknown command '{}': did you mean '{}'? 'msprobe --help' lists all", name, *whole));
  }
  std::vector<std::string_view> names;
  for (const Command& command : kCommands) {
    names.push_back(command.name);
    if (!command.earlier.empty()) names.push_back(command.earlier);
  }
  if (const auto likely = LikelyWord(name, names)) {
    return UsageError(Msg("unknown command '{}': did you mean {}? 'msprobe --help' lists all", name, *likely));
  }
  return UsageError(Msg("unknown command '{}': 'msprobe --help' lists all", name));
}

/// "A<middle>B" with what the user gave anywhere: the last `middle` is the program's.
bool SplitAtLast(std::string_view text, std::string_view middle, std::string* a, std::string* b) {
  const size_t at = text.rfind(middle);
  if (at == std::string_view::npos) return false;
  *a = text.substr(0, at);
  *b = text.substr(at + middle.size());
  return true;
}

/// What CLI11 says of wrong arguments.
Message WrongArguments(const CLI::ParseError& error) {
  const std::string text = error.what();
  std::string a, b, option, given;
  if (dynamic_cast<const CLI::ConversionError*>(&error) && text.starts_with("Could not convert: ")) {
    const size_t at = text.find(" = ");
    if (at != std::string::npos)
      return Msg("Could not convert: {} = {}", text.substr(19, at - 19), text.substr(at + 3));
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) && text.ends_with(" is required") &&
      text != "A subcommand is required") {
    return Msg("{} is required", text.substr(0, text.size() - 12));
  }
  if (dynamic_cast<const CLI::ExcludesError*>(&error) && SplitAtLast(text, " excludes ", &a, &b)) {
    return Msg("{} excludes {}", a, b);
  }
  if (dynamic_cast<const CLI::RequiresError*>(&error) && SplitAtLast(text, " requires ", &a, &b)) {
    return Msg("{} requires {}", a, b);
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) && text.ends_with(" missing") &&
      SplitAtLast(std::string_view(text).substr(0, text.size() - 8), " required ", &a, &b) &&
      SplitAtLast(a, ": ", &option, &given)) {
    return Msg("{}: {} required {} missing", option, given, b);
  }
  if (!dynamic_cast<const CLI::ValidationError*>(&error)) return KnownText(text);
  const size_t colon = text.find(": ");
  if (colon == std::string::npos) return KnownText(text);
  option = text.substr(0, colon), given = text.substr(colon + 2);
  if (given.starts_with("Value ") && SplitAtLast(given, " not in range ", &a, &b)) {
    std::string least, most;
    if (SplitAtLast(b, " to ", &least, &most))
      return Msg("{}: Value {} not in range {} to {}", option, a.substr(6), least, most);
    return Msg("{}: Value {} not in range {}", option, a.substr(6), b);
  }
  if (given.ends_with("}") && SplitAtLast(given, " not in {", &a, &b)) {
    b.pop_back();
    return Msg("{}: {} not in {{{}}}", option, a, b);
  }
  return Message(text);
}

/// The command that was given, then the part of it, such as judge of monitor.
std::vector<const CLI::App*> GivenCommands(const CLI::App& app) {
  std::vector<const CLI::App*> out;
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) out.push_back(at = at->get_subcommands().front());
  return out;
}

Status UsageOf(const CLI::App& app, const CLI::ParseError& error) {
  Message text = WrongArguments(error);
  std::string help = "msprobe", likely;
  for (const CLI::App* command : GivenCommands(app)) {
    help += " " + command->get_name();
    const std::vector<std::string> left = command->remaining();
    if (dynamic_cast<const CLI::ExtrasError*>(&error) && !left.empty()) {
      const Command* known = CommandNamed(command->get_name());
      const bool option = StartsWith(left[0], "-");
      text = option ? Msg("unknown option {}", left[0])
             : known && known->runs_program && command->get_subcommands().empty()
                 ? Msg("unexpected argument {} (your command goes after '--')", left[0])
                 : Msg("unexpected argument {}", left[0]);
      if (option) likely = LikelyOption(*command, left[0]);
    }
  }
  if (!likely.empty()) return UsageError(Msg("{}: did you mean {}? See '{} --help'", text, likely, help));
  if (dynamic_cast<const CLI::RequiredError*>(&error)) {
    const std::string_view example = FirstExample(std::string_view(help).substr(help.find(' ') + 1));
    if (!example.empty()) return UsageError(Msg("{}, as in '{}': see '{} --help'", text, example, help));
  }
  return UsageError(Msg("{}: see '{} --help'", text, help));
}

/// CLI11 reads "-html" as "-h" and "tml", and a path that is missing behind "-tp" as the next option.
Status CheckDashes(const CLI::App& app, std::string_view name, const std::vector<std::string>& args) {
  const CLI::App& command = *app.get_subcommand(std::string(name));
  for (size_t i = 0; i < args.size() && args[i] != "--"; ++i) {
    if (const std::string meant = LongOption(command, args[i]); !meant.empty()) {
      const std::string help = fmt::format("msprobe {}", name);
      return UsageError(Msg("{}: did you mean {}? See '{} --help'", Msg("unknown option {}", args[i]), meant, help));
    }
    const CLI::Option* option = command.get_option_no_throw(args[i]);
    const bool path = args[i] == "--target_path" || args[i] == "--golden_path";
    if (!option || !path || (i + 1 < args.size() && !StartsWith(args[i + 1], "-"))) continue;
    return UsageError(Msg("{} needs a path behind it: see 'msprobe {} --help'", ShortOf(args[i]), name));
  }
  return OkStatus();
}

}  // namespace

int RunCommand(std::vector<std::string> args) {
  CommandContext context;
  CLI::App app{"msprobe: find where two runs of a model diverge, and where a single run goes wrong.", "msprobe"};
  app.set_version_flag("-V,-v,--version", "msprobe " MSPROBE_VERSION);
  app.add_option("-f,--framework", context.framework,
                 "framework of the dumps; only needed by scripts written for mindstudio-probe, msprobe detects it")
      ->check(CLI::IsMember({"pytorch", "mindspore"}));
  app.require_subcommand(1);
  for (const Command& command : kCommands) command.add(app, &context);
  app.footer("Run 'msprobe COMMAND --help' for the options of a command.");  // behind them: they would take it over

  bool becomes_program = false;
  bool all_options = false;
  args = ExpandShortOptions(ReadHelpWords(std::move(args), &all_options));
  FinishHelp(&app, all_options);
  if (args.empty()) {
    PrintForPeople(Message(app.help()));
    return Report(UsageError(Msg("a command is missing: 'msprobe COMMAND --help' shows its options")));
  }
  if (const size_t at = FindCommand(args); at < args.size()) {
    const Command* command = CommandNamed(args[at]);
    if (!command) return Report(UnknownCommand(args[at]));
    if (Status wrong = CheckDashes(app, command->name, args); !wrong.ok()) return Report(std::move(wrong));
    args[at] = command->name;
    if (command->runs_program) context.program = TakeProgram(&args);
    becomes_program = args[at] == "run" || (args[at] == "monitor" && !context.program.empty());
  }
  std::vector<std::string> reversed(args.rbegin(), args.rend());  // CLI11 takes the arguments back to front
  if (!becomes_program) {  // which has its streams and signals as the caller set them
    OpenStandardStreams();
    InstallInterruptHandler();
    TidyOutputDirectories();
  }
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {  // --help, --version
      (void)app.exit(e);
      return Report(OkStatus());
    }
    return Report(UsageOf(app, e));
  } catch (...) {
    return Report(StatusOfException());
  }
  return Report(std::move(context.status));
}

}  // namespace msprobe
