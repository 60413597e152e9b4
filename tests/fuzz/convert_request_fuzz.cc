// Bodies of POST /api/convert: whatever they hold, the words of the command are options that we know and paths below
// the directory.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "fuzz_file.h"
#include "serve/convert_request.h"

namespace {

using namespace msprobe;

struct Tree {
  Tree() {
    std::string name = (std::filesystem::temp_directory_path() / "msprobe_fuzz_XXXXXX").string();
    fuzz::Check(mkdtemp(name.data()) != nullptr, "a directory can be made");
    path = std::filesystem::canonical(name);
    std::filesystem::create_directories(path / "a/step0/rank0");
    std::filesystem::create_directory_symlink("/", path / "link");
    std::ofstream(path / "m.yaml") << "a: {b: c}\n";
  }
  ~Tree() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

constexpr std::string_view kOptions[] = {"target_path",
                                         "golden_path",
                                         "output_path",
                                         "layer_mapping",
                                         "template",
                                         "overflow_check",
                                         "fuzzy_match",
                                         "is_print_compare_log",
                                         "thresholds",
                                         "structure",
                                         "suggest_mapping",
                                         "plain",
                                         "engine",
                                         "rank_size",
                                         "tp",
                                         "pp",
                                         "vpp",
                                         "cp",
                                         "ep",
                                         "order",
                                         "layout",
                                         "plan",
                                         "file_type"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Tree tree;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const view::ServedTree served(tree.path.string());
  const auto options = serve::ConvertOptions(served, body);
  if (!options.ok()) {
    fuzz::Check(options.status().code() == Code::kUsage || options.status().code() == Code::kBadInput,
                "a refusal is 4xx");
    return 0;
  }
  for (const std::string& word : *options) {
    fuzz::Check(!word.empty() && word.find('\0') == std::string::npos, "words have no end of their own");
    if (word[0] == '-') {
      const bool known = std::any_of(std::begin(kOptions), std::end(kOptions),
                                     [&](std::string_view name) { return word == "--" + std::string(name); });
      fuzz::Check(known, "an option is one of ours");
    } else if (word[0] == '.') {
      fuzz::Check(word.find("..") == std::string::npos || word.find("/../") == std::string::npos, "no way up");
      fuzz::Check(word.rfind("./link", 0) != 0, "no link is followed");
    }
  }
  // The same of a listing: what a request names lies below the directory.
  if (const auto list = served.List(body); list.ok()) {
    fuzz::Check(list->path.empty() || (list->path[0] != '/' && list->path[0] != '.'), "a listing is of the tree");
  }
  return 0;
}
