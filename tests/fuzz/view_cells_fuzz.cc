// The JSON texts in the columns of a graph database.
#include <string>

#include "fuzz_file.h"
#include "json/parser.h"
#include "view/file/cells.h"
#include "view/query/label.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  // A copy of the exact size, so that a read behind the end is seen.
  const std::string copy(reinterpret_cast<const char*>(data), size);
  const std::vector<char> exact(copy.begin(), copy.end());
  const std::string_view text(exact.data(), exact.size());
  for (const view::ViewRow& row : view::ParseRows(text))
    fuzz::Check(row.values.size() <= size, "values come from the text");
  fuzz::Check(view::ParseTexts(text).size() <= size, "texts come from the text");
  fuzz::Check(view::ParseInts(text).size() <= size, "integers come from the text");
  // A byte that is not UTF-8 becomes the three bytes of U+FFFD.
  fuzz::Check(view::LastText(text).size() <= size * 3, "a name comes from the text");
  if (const std::string_view object = view::ObjectText(text); !object.empty()) {
    JsonDoc doc;
    fuzz::Check(ParseJson(object, "object", &doc).ok() && doc.IsObject(), "what is sent on is an object");
  }
  for (const bool module : {false, true}) {
    const std::string_view label = view::ShortLabel(text, module, false);
    fuzz::Check(text.substr(text.size() - label.size()) == label, "a label is the end of the name");
  }
  return 0;
}
