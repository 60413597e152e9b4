// Bytes as text.
#pragma once

#include <string>
#include <string_view>

namespace msprobe {

std::string Base64(std::string_view bytes);
/// False for what Base64() does not write.
bool FromBase64(std::string_view text, std::string* bytes);

}  // namespace msprobe
