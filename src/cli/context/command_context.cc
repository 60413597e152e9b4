#include "cli/context/command_context.h"

#include <cstdio>

#include "base/text.h"
#include "base/words/translate.h"

namespace msprobe {

void PrintMessage(std::string_view marker, const std::string& text) {
  const std::string line = std::string(marker) + InLanguage(OneLine(text), LocaleLanguage()) + "\n";
  std::fputs(line.c_str(), stderr);
}

void PrintWarning(const std::string& text) { PrintMessage("[msprobe] warning: ", text); }

void PrintJson(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void PrintForPeople(std::string_view text) {
  const std::string shown = InLanguage(text, LocaleLanguage());
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

}  // namespace msprobe
