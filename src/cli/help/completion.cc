#include "cli/help/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cctype>
#include <string_view>
#include <vector>

#include "cli/help/short_options.h"

namespace msprobe {
namespace {

std::vector<std::string> NamesOf(const CLI::Option& option) {
  std::vector<std::string> out;
  for (const std::string& name : option.get_lnames()) {
    out.push_back("--" + name);
    if (const std::string_view shorter = ShortOf(out.back()); !shorter.empty()) out.emplace_back(shorter);
  }
  for (const std::string& name : option.get_snames()) out.push_back("-" + name);
  return out;
}

/// "bug suspicious" of a type "TEXT:{bug,suspicious}"; "" where any value goes.
std::string ChoicesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  std::string out = type.substr(begin + 1, end - begin - 1);
  for (char& c : out) c = c == ',' ? ' ' : c;
  return out;
}

struct Listed {
  std::string path;  // "ckpt compare"; "" for msprobe itself
  const CLI::App* app;
};

void ListCommands(const CLI::App& app, const std::string& path, std::vector<Listed>* out) {
  out->push_back({path, &app});
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name().empty()) continue;
    ListCommands(*command, path.empty() ? command->get_name() : path + " " + command->get_name(), out);
  }
}

/// Options and commands that may follow.
std::string WordsAfter(const CLI::App& app) {
  std::string out;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!command->get_name().empty()) out += (out.empty() ? "" : " ") + command->get_name();
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : NamesOf(*option)) out += (out.empty() ? "" : " ") + name;
  }
  return out;
}

/// Text of man: a line must not begin with a dot or a quote, and a backslash is written as two.
std::string Roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if ((out.empty() || out.back() == '\n') && (c == '.' || c == '\'')) out += "\\&";
    out += c == '\\' ? "\\\\" : c == '-' ? "\\-" : std::string(1, c);
  }
  return out;
}

}  // namespace

std::string BashCompletion(const CLI::App& app) {
  std::vector<Listed> commands;
  ListCommands(app, "", &commands);
  std::string words, values;
  for (const Listed& c : commands) {
    words += fmt::format("    '{}') words='{}' ;;\n", c.path, WordsAfter(*c.app));
    for (const CLI::Option* option : c.app->get_options()) {
      const std::string choices = ChoicesOf(*option);
      if (choices.empty()) continue;
      for (const std::string& name : NamesOf(*option))
        values += fmt::format("    '{} {}') values='{}' ;;\n", c.path, name, choices);
    }
  }
  return fmt::format(R"sh(# msprobe: commands, options and their values. Put this line into ~/.bashrc:
#   eval "$(msprobe completion bash)"
_msprobe() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} path='' words='' values='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    # Behind it stands a command of the user.
    [[ ${{COMP_WORDS[i]}} == -- ]] && return
    case " $(_msprobe_words "$path") " in
      *" ${{COMP_WORDS[i]}} "*) [[ ${{COMP_WORDS[i]}} == -* ]] || path=${{path:+$path }}${{COMP_WORDS[i]}} ;;
    esac
  done
  words=$(_msprobe_words "$path")
  case "$path $previous" in
{1}  esac
  if [[ -n $values ]]; then
    COMPREPLY=($(compgen -W "$values" -- "$current"))
  elif [[ $current == -* || -z $path ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    local commands=() word
    for word in $words; do [[ $word == -* ]] || commands+=("$word"); done
    COMPREPLY=($(compgen -W "${{commands[*]}}" -- "$current"))
  fi
}}
_msprobe_words() {{
  local words=''
  case $1 in
{0}  esac
  echo "$words"
}}
complete -o default -F _msprobe msprobe
)sh",
                     words, values);
}

std::string ZshCompletion(const CLI::App& app) {
  return "# Put this line into ~/.zshrc:\n#   eval \"$(msprobe completion zsh)\"\n"
         "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" +
         BashCompletion(app);
}

std::string ManualPage(const CLI::App& app) {
  std::vector<Listed> commands;
  ListCommands(app, "", &commands);
  const std::string about = app.get_description();
  const size_t colon = about.find(": ");
  std::string out = fmt::format(
      ".TH MSPROBE 1 \"\" \"{}\"\n.SH NAME\nmsprobe \\- {}\n.SH SYNOPSIS\n"
      ".B msprobe\n.I COMMAND\n[options]\n.SH COMMANDS\n",
      app.version(), Roff(colon == std::string::npos ? about : about.substr(colon + 2)));
  for (const Listed& c : commands) {
    if (c.path.empty()) continue;
    out += fmt::format(".SS msprobe {}\n{}\n", Roff(c.path), Roff(c.app->get_description()));
    for (const CLI::Option* option : c.app->get_options()) {
      std::string names;
      for (const std::string& name : NamesOf(*option)) names += (names.empty() ? "" : ", ") + name;
      if (names.empty()) names = option->get_name(true);
      out += fmt::format(".TP\n.B {}\n{}\n", Roff(names), Roff(option->get_description()));
    }
    if (const std::string footer = c.app->get_footer(); !footer.empty())
      out += fmt::format(".PP\n.nf\n{}\n.fi\n", Roff(footer));
  }
  return out;
}

}  // namespace msprobe
