// The languages in which the tool speaks to people. Files for programs are in English.
#pragma once

#include <cstdint>

namespace msprobe {

enum class Language : uint8_t { kEnglish, kChinese };

/// That of the locale: Chinese where the first of LC_ALL, LC_MESSAGES and LANG that is set begins with "zh".
Language LocaleLanguage();

}  // namespace msprobe
