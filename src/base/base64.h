// Bytes as text.
#pragma once

#include <string>
#include <string_view>

namespace msprobe {

std::string Base64(std::string_view bytes);

}  // namespace msprobe
