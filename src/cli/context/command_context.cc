#include "cli/context/command_context.h"

#include <cstdio>

#include "base/text.h"
#include "base/words/translate.h"

namespace msprobe {

void PrintMessage(std::string_view marker, const std::string& text) {
  const std::string line = std::string(marker) + InLanguage(OneLine(text), LocaleLanguage()) + "\n";
  std::fputs(line.c_str(), stderr);
}

void PrintMessage(std::string_view marker, const Message& message) {
  // A text without a template was made by a room that has none yet.
  if (message.kind() == Message::Kind::kText) return PrintMessage(marker, message.English());
  const std::string line = std::string(marker) + OneLine(InLanguage(message, LocaleLanguage())) + "\n";
  std::fputs(line.c_str(), stderr);
}

void PrintWarning(const std::string& text) { PrintMessage("[msprobe] warning: ", text); }

void PrintWarning(const Message& message) { PrintMessage("[msprobe] warning: ", message); }

void PrintJson(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void PrintForPeople(const Message& message) {
  const std::string shown = InLanguage(message, LocaleLanguage());
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

void PrintForPeople(std::string_view text) {
  const std::string shown = InLanguage(text, LocaleLanguage());
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

}  // namespace msprobe
