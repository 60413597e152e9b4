// dump.json as op_generate reads it: scripts of PyTorch and MindSpore have text of the dump in quotes only.
#include <algorithm>
#include <string>
#include <string_view>

#include "dump/reader.h"
#include "fuzz_file.h"
#include "lab/scripts/mindspore_script.h"
#include "lab/scripts/torch_script.h"

namespace msprobe::fuzz {
namespace {

constexpr size_t kMostOps = 50;

/// What is made of the dump, between what all scripts have: literals end on their line, and outside of them are names,
/// numbers and brackets.
void CheckPlain(std::string_view text) {
  char quote = 0;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      Check(c != '\n', "a literal ends on its line");
      if (c == '\\') {
        ++i;
      } else if (c == quote) {
        quote = 0;
      }
      continue;
    }
    if (c == '\'' || c == '"') {
      quote = c;
      continue;
    }
    if (std::string_view("([{").find(c) != std::string_view::npos) ++depth;
    if (std::string_view(")]}").find(c) != std::string_view::npos) --depth;
    Check(depth >= 0, "brackets close what was opened");
    const bool name = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    Check(name || std::string_view("_.,:()[]{}=+- \n").find(c) != std::string_view::npos,
          "text of the dump is in quotes");
  }
  Check(quote == 0 && depth == 0, "what was opened is closed");
}

void CheckScript(const StatusOr<std::string>& script, std::string_view end) {
  if (!script.ok()) return CheckRefusal(script.status());
  const size_t from = script->find("\nINPUTS = "), to = script->find(end, from);
  Check(from != std::string::npos && to != std::string::npos, "a script has its parts");
  CheckPlain(std::string_view(*script).substr(from, to - from));
}

void Generate(const DumpFile& dump) {
  for (size_t i = 0; i < std::min(dump.ops().size(), kMostOps); ++i) {
    OpScriptSettings settings;
    settings.call = dump.ops()[i].name;
    const size_t end = settings.call.rfind(".forward");
    if (end == std::string::npos) continue;
    settings.call.resize(end);
    for (const bool backward : {false, true}) {
      settings.backward = backward;
      CheckScript(TorchScript(settings, dump, "script.py"), "\n\ndef run(change)");
      const auto script = MindSporeScript(settings, dump, "script.py");
      const bool numpy = script.ok() && script->find("\n# ---- functions of numpy") != std::string::npos;
      CheckScript(script, numpy ? "\n# ---- functions of numpy" : "\nREFERENCE = ");
    }
  }
}

}  // namespace
}  // namespace msprobe::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const fuzz::MemoryFile file(data, size);
  const auto dump = DumpFile::Open(file.path());
  dump.ok() ? fuzz::Generate(*dump) : fuzz::CheckRefusal(dump.status());
  return 0;
}
