// What somebody types into the search, and whether a name has it. The first line is the search, the rest a name.
#include <algorithm>
#include <string_view>
#include <vector>

#include "fuzz_file.h"
#include "view/search/op_name.h"
#include "view/search/search_terms.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  const std::vector<char> exact(data, data + size);  // so that a read behind the end is seen
  const std::string_view text(exact.data(), exact.size());
  const size_t line = std::min(text.find('\n'), text.size());
  const std::string_view name = text.substr(std::min(line + 1, text.size()));
  const auto terms = view::ParseSearchTerms(text.substr(0, line));
  if (!terms.ok()) {
    fuzz::Check(terms.status().code() == Code::kUsage, "a refused search is wrong usage");
    fuzz::Check(!terms.status().message().empty(), "a refusal says why");
    return 0;
  }
  fuzz::Check(terms->terms.size() <= view::kMostTerms, "there are few terms");
  for (const view::SearchTerm& term : terms->terms) {
    const int kinds = int{!term.pattern.empty()} + int{term.levels != 0} + int{term.types != 0} +
                      int{term.dtypes != 0} + int{!term.ops.empty()} +
                      int{term.error.relation != view::ErrorBound::Relation::kNone};
    fuzz::Check(kinds == 1, "a term is about one thing");
    for (const view::NamePattern& op : term.ops) {
      if (view::IsPattern(name, op)) fuzz::Check(view::FitsPattern(name, op), "what fits as a whole fits");
    }
    if (view::FitsPattern(name, term.pattern) || name.empty()) continue;
    // What a name lacks its parts lack, too.
    fuzz::Check(!view::FitsPattern(name.substr(name.size() / 2), term.pattern), "a part has no more than the whole");
  }
  const std::string_view op = view::OpNameOf(name);
  fuzz::Check(op.size() <= name.size(), "an op is a part of its node's name");
  for (const std::string& word : terms->Marked()) fuzz::Check(!word.empty(), "what is marked is a text");
  return 0;
}
