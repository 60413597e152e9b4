// The lines of a Python file as its grammar has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace msprobe {

struct PythonLine {
  int indent = 0;
  int line = 0;      // where it begins
  std::string text;  // without comments; lines that brackets or "\" continue are one
};

std::vector<PythonLine> PythonLines(std::string_view text);

/// The parts between commas up to the bracket that closes what is open where the text begins.
std::vector<std::string_view> PythonArguments(std::string_view text);

/// Where the "=" of an assignment stands, outside of brackets and texts; npos. None of ==, +=, <=.
size_t AssignmentOf(std::string_view text);

}  // namespace msprobe
