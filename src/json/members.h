// The members of a JSON object, one by one, without building values; shared by the readers of dump, stack and construct
// files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/message.h"
#include "base/page_trim.h"
#include "base/status.h"

namespace msprobe {

/// One member: its key as it stands between the quotes, and where its value stands.
struct Member {
  std::string_view key;
  bool escaped = false;  // the key holds escapes or is not UTF-8: see UnescapeKey
  size_t begin = 0, end = 0;
};

/// Reads {"key": value, ...} from the byte behind its '{'. A trailing comma is accepted.
class MemberScanner {
 public:
  enum class Step {
    kMember,
    kEnd,        ///< the closing brace; position() is behind it
    kTruncated,  ///< the text ends first
    kBad,        ///< position() is the wrong byte, expected() what should stand there
  };
  MemberScanner(std::string_view text, size_t pos) : text_(text), pos_(pos) {}
  /// The next key; m->begin is where its value starts. The value must be skipped, by SkipValue() or Continue().
  Step NextKey(Member* m);
  /// Skips the value of `m` and sets m->end.
  Step SkipValue(Member* m);
  /// NextKey and SkipValue.
  Step Next(Member* m);
  /// Goes on behind a value that the caller has read itself.
  void Continue(size_t pos) { pos_ = pos; }
  size_t position() const { return pos_; }
  const char* expected() const { return expected_; }

 private:
  Step Bad(const char* expected) {
    expected_ = expected;
    return Step::kBad;
  }
  std::string_view text_;
  size_t pos_;
  bool first_ = true;
  const char* expected_ = "";
};

/// The text of `file` without a byte order mark and without the NUL bytes that a crashed machine leaves at the end;
/// `begin` is behind the '{' of its object. kBadInput when it does not start with one; `what` says what was expected,
/// as "a dump.json".
struct JsonText {
  std::string_view text;
  size_t begin = 0;
};
StatusOr<JsonText> OpenObject(const MappedFile& file, std::string_view what);

/// kBadInput unless only white space follows the object that ends at `end`.
Status CheckEnd(const MappedFile& file, std::string_view text, size_t end);
/// The error for Step::kBad.
Status BadByte(const MappedFile& file, std::string_view text, size_t pos, std::string_view expected);
/// A name from a file as it may stand in a one-line message: quoted, control characters escaped, cut when long.
std::string Shown(std::string_view name);
StatusOr<std::string> UnescapeKey(const MappedFile& file, std::string_view key);

/// Calls take(name, value text, offset) for each member of the object in `file`; a cut end is told in `truncated`.
template <typename Take>
Status ForEachMember(const MappedFile& file, std::string_view what, Message* truncated, const Take& take) {
  MSP_ASSIGN_OR_RETURN(const JsonText json, OpenObject(file, what));
  MemberScanner scanner(json.text, json.begin);
  Member m;
  std::string name;
  constexpr size_t kBetweenLooks = 4096;  // members between two looks at Ctrl-C
  for (size_t n = 1;; ++n) {
    if (n % kBetweenLooks == 0 && InterruptRequested()) return Interrupted();
    if (n % kStepsBetweenTrims == 0) TrimMaps();  // `take` may look up a name anywhere in a file
    switch (scanner.Next(&m)) {
      case MemberScanner::Step::kMember: break;
      case MemberScanner::Step::kEnd: return CheckEnd(file, json.text, scanner.position());
      case MemberScanner::Step::kBad: return BadByte(file, json.text, scanner.position(), scanner.expected());
      case MemberScanner::Step::kTruncated:
        *truncated = Msg(
            "{} ends at byte {} without its closing braces: the run was probably killed; the entries before were read",
            file.path(), json.text.size());
        return OkStatus();
    }
    std::string_view key = m.key;
    if (m.escaped) {
      MSP_ASSIGN_OR_RETURN(name, UnescapeKey(file, m.key));
      key = name;
    }
    MSP_RETURN_IF_ERROR(take(key, json.text.substr(m.begin, m.end - m.begin), m.begin));
  }
}

}  // namespace msprobe
