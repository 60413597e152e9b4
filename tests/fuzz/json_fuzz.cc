// Any text as JSON: nothing crashes, what is read can be asked for anything, and a copy is the same.
#include <cmath>
#include <string>
#include <vector>

#include "base/text.h"
#include "fuzz_file.h"
#include "json/parser.h"

namespace msprobe::fuzz {
namespace {

struct Seen {
  size_t values = 0, text = 0;
  bool has_nan = false;
};

void Walk(const JsonValue& v, Seen* seen) {
  ++seen->values;
  seen->text += v.Text().size();
  seen->has_nan = seen->has_nan || std::isnan(v.Number());
  Check(IsUtf8(v.Text()), "a text is UTF-8");
  Check(v.IsInt() || v.Int() == 0, "what is not whole has no whole value");
  Check(!v.IsInt32() || v.Int32() == v.Int(), "a small number is the same");
  Check(v.IsUInt() || v.UInt() == 0, "what is negative has no unsigned value");
  Check(!v.IsNumber() || v.Items().empty(), "a number has no elements");
  Check(v[v.size()].IsNull(), "there is nothing behind the last element");
  for (const JsonValue& item : v.Items()) Walk(item, seen);
  for (const JsonMember& m : v.Members()) {
    seen->text += m.name.size();
    Check(IsUtf8(m.name), "a name is UTF-8");
    Check(v.Find(m.name) >= &m.value, "the last member of a name counts");
    Walk(m.value, seen);
  }
}

}  // namespace
}  // namespace msprobe::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace msprobe;
  // A copy of the exact size, so that a read behind the end is seen.
  const std::vector<char> exact(reinterpret_cast<const char*>(data), reinterpret_cast<const char*>(data) + size);
  const std::string_view text(exact.data(), exact.size());
  JsonDoc doc, other;
  const Status status = ParseJson(text, "input", &doc);
  const bool strict = ParseJson(text, "input", &other, 0, {.strict = true}).ok();
  fuzz::Check(status.ok() || !strict, "what a browser accepts is read");
  fuzz::Check(ParseJson(text, "input", &other, 0, {.numbers_as_text = true}).ok() == status.ok(),
              "numbers as text are read where numbers are");
  if (!status.ok()) {
    fuzz::CheckRefusal(status);
    fuzz::Check(doc.IsNull(), "a refused text leaves nothing");
    return 0;
  }
  fuzz::Seen seen;
  fuzz::Walk(doc, &seen);
  fuzz::Check(seen.values <= size && seen.text <= size * 3, "values come from the text");
  fuzz::Check(ParseJson("{\"old\": 1, \"kept\": 2}", "object", &other).ok(), "an object is read");
  other.Replace("old", &doc);
  fuzz::Check(other.size() == 2 && other["kept"].Int() == 2, "other members stay");
  fuzz::Check(seen.has_nan || other["old"] == doc, "a copy is the same");
  return 0;
}
