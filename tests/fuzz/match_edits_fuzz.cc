// The three texts that matches by hand travel in: the file beside the database, the configuration, the body of a
// request.
#include <string_view>
#include <vector>

#include "fuzz_file.h"
#include "view/file/match_edits.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const std::vector<char> exact(data, data + size);  // so that a read behind the end is seen
  const std::string_view text(exact.data(), exact.size());
  if (const auto edits = view::ParseFileEdits(text, "file"); edits.ok()) {
    const auto again = view::ParseFileEdits(view::FileEditsJson(*edits), "file");
    fuzz::Check(again.ok() && *again == *edits, "what was read comes back");
  } else {
    fuzz::CheckRefusal(edits.status());
  }
  if (const auto pairs = view::ParseMatchConfig(text, "file"); pairs.ok()) {
    view::MatchEdits edits;
    for (const auto& [npu, bench] : *pairs) edits.made.insert_or_assign(npu, bench);
    const auto again = view::ParseMatchConfig(view::MatchConfigJson(edits), "file");
    fuzz::Check(again.ok() && again->size() == edits.made.size(), "what was written is read");
  } else {
    fuzz::CheckRefusal(pairs.status());
  }
  if (const auto request = view::ParseMatchRequest(text); !request.ok())
    fuzz::Check(request.status().code() == Code::kUsage, "a refused body is wrong usage");
  return 0;
}
