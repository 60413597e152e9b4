// Graphs of MindSpore as text: what is taken has a scope, refusals are one line.
#include <string_view>

#include "fuzz_file.h"
#include "import/ir_code.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = IrFile::Parse(text, "input");
  if (!file.ok()) {
    fuzz::CheckRefusal(file.status());
    fuzz::Check(file.status().message().find('\n') == std::string::npos, "a refusal is one line");
  } else {
    fuzz::Check(file->size() > 0, "a graph has a node");
  }
  IrNode node;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    node.lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  fuzz::Check(SourceLine(node).size() <= size + 1, "a line of source is part of the text");
  fuzz::Check(CodeStack(node).size() <= size, "and so are all of them");
  return 0;
}
