#include "cli/context/command_context.h"

#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "base/words/translate.h"

namespace msprobe {

void PrintMessage(std::string_view marker, const Message& message) {
  std::string lines = std::string(marker) + OneLine(InLanguage(message, LocaleLanguage())) + "\n";
  // The server shows both languages.
  if (const char* both = std::getenv("MSPROBE_BOTH_LANGUAGES"); both && *both) {
    lines += "\x1e" + std::string(marker) + OneLine(InLanguage(message, Language::kChinese)) + "\n";
  }
  std::fputs(lines.c_str(), stderr);
}

void PrintWarning(const Message& message) { PrintMessage("[msprobe] warning: ", message); }

void PrintJson(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Language LanguageFor(const CommandContext& context) { return context.json ? Language::kEnglish : LocaleLanguage(); }

void PrintForPeople(const Message& message) {
  const std::string shown = InLanguage(message, LocaleLanguage());
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

}  // namespace msprobe
