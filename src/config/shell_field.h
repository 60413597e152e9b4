// A word of a shell script after expansion, with its place.
#pragma once

#include <string>

namespace msprobe {

struct ShellField {
  std::string text;
  std::string file;
  int line = 0;
};

}  // namespace msprobe
