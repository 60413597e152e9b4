// What every command gets and how it prints.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/language.h"
#include "base/message.h"
#include "base/status.h"
#include "judgement/judgement.h"

namespace msprobe {

struct CommandContext {
  Status status;
  std::string framework;             // -f pytorch|mindspore of the old command form; "" if absent
  std::optional<FailOn> fail_on;     // --fail-on
  bool json = false;                 // --json: the summary as one JSON object on stdout instead of text
  std::vector<std::string> program;  // what stands behind "--", of the commands that run a program
};

/// One line on stderr. Scripts look for the marker, so it is English in every locale.
void PrintMessage(std::string_view marker, const Message& message);

/// One line on stderr, whatever `text` holds.
void PrintWarning(const Message& message);

/// What programs read, on stdout as it is.
void PrintJson(std::string_view text);

/// Of what is concluded: programs get English.
Language LanguageFor(const CommandContext& context);

/// A summary on stdout, in the language of the locale.
void PrintForPeople(const Message& message);

}  // namespace msprobe
