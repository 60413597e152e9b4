#include "cli/help/help.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "base/language.h"
#include "base/message.h"
#include "base/text.h"
#include "base/words/translate.h"
#include "cli/help/option_groups.h"
#include "cli/help/short_options.h"

namespace msprobe {
namespace {

struct CommandGroup {
  std::string_view command, group;
};
constexpr std::array kGroups{
#define MSP_COMMAND(function, name, group, runs_program, earlier) CommandGroup{name, group},
#include "cli/context/commands.def"
};

struct Example {
  std::string_view command, line, purpose;
};
constexpr std::array kExamples{
#define MSP_EXAMPLE(command, line, purpose) Example{command, line, purpose},
#include "cli/help/examples.def"
};

/// As CLI11 takes it: without an entry in the language the English stays.
std::string Said(std::string_view text) { return InLanguage(KnownText(text), LocaleLanguage()); }

/// "Examples:" and a line each; the purpose stands above its line, so that a line can be copied whole.
std::string ExamplesOf(std::string_view command) {
  std::string out;
  for (const Example& example : kExamples) {
    if (example.command != command) continue;
    if (out.empty()) out = Said("Examples:") + "\n";
    out += fmt::format("  # {}\n  {}\n", Said(example.purpose), example.line);
  }
  return out;
}

void Translate(CLI::App* app) {
  app->description(Said(app->get_description()));
  for (CLI::Option* option : app->get_options()) {
    option->description(Said(option->get_description()));
    option->group(Said(option->get_group()));
  }
  std::string footer = app->get_footer();
  if (!footer.empty()) app->footer(Said(footer));
  for (CLI::App* child : app->get_subcommands(nullptr)) {
    child->group(Said(child->get_group()));
    Translate(child);
  }
}

std::vector<std::string> LongNames(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

}  // namespace

std::vector<std::string> ReadHelpWords(std::vector<std::string> args, bool* all) {
  if (!args.empty() && args.front() == "help") {
    args.erase(args.begin());
    args.emplace_back("--help");
  }
  const auto end = std::find(args.begin(), args.end(), "--");
  const auto at = std::find(args.begin(), end, "--help-all");
  *all = at != end;
  if (*all) *at = "--help";
  return args;
}

void FinishHelp(CLI::App* app, bool all) {
  std::vector<std::string_view> shortened;
  for (const CommandGroup& row : kGroups) {
    CLI::App* command = app->get_subcommand(std::string(row.command));
    command->group(std::string(row.group));
    if (GroupOptions(command, all) && !all) shortened.push_back(row.command);
  }
  if (LocaleLanguage() != Language::kEnglish) Translate(app);
  for (const CommandGroup& row : kGroups) {
    CLI::App* command = app->get_subcommand(std::string(row.command));
    std::vector<std::string> parts = {command->get_footer(), ExamplesOf(row.command)};
    if (std::find(shortened.begin(), shortened.end(), row.command) != shortened.end()) {
      parts.push_back(InLanguage(Msg("'msprobe {} --help-all' shows all options.", row.command), LocaleLanguage()));
    }
    std::erase(parts, "");
    command->footer(fmt::format("{}", fmt::join(parts, "\n")));
  }
}

std::string_view FirstExample(std::string_view command) {
  const std::string_view first = command.substr(0, command.find(' '));
  const std::string begin = fmt::format("msprobe {} ", command);
  const auto* found = std::find_if(kExamples.begin(), kExamples.end(), [&](const Example& e) {
    return e.command == first && (e.line.starts_with(begin) || first == command);
  });
  return found == kExamples.end() ? std::string_view() : found->line;
}

std::string LongOption(const CLI::App& command, std::string_view given) {
  if (given.size() < 3 || given[0] != '-' || given[1] == '-') return "";
  std::string name(given.substr(1, given.find('=') - 1));
  std::replace(name.begin(), name.end(), '-', '_');
  for (const std::string& known : LongNames(command)) {
    std::string plain = known.substr(2);
    std::replace(plain.begin(), plain.end(), '-', '_');
    if (plain == name) return known;
  }
  return "";
}

std::string LikelyOption(const CLI::App& command, std::string_view given) {
  const std::vector<std::string> names = LongNames(command);
  const std::vector<std::string_view> words(names.begin(), names.end());
  given = given.substr(0, given.find('='));
  // "--tp" and "-t" for "-tp" stand before words that are written alike.
  for (const std::string_view word : words) {
    const std::string_view brief = ShortOf(word);
    if (brief.empty() || (given != fmt::format("-{}", brief) && !(given.size() == 2 && brief.starts_with(given)))) {
      continue;
    }
    return fmt::format("{} ({})", brief, word);
  }
  auto likely = LikelyWord(given, words);
  const auto begins = [&](std::string_view w) { return w.starts_with("-" + std::string(given)); };
  if (!likely && given.size() == 2 && std::ranges::count_if(words, begins) == 1)
    likely = *std::ranges::find_if(words, begins);
  if (!likely) return "";
  const std::string_view brief = ShortOf(*likely);
  return brief.empty() ? std::string(*likely) : fmt::format("{} ({})", *likely, brief);
}

}  // namespace msprobe
