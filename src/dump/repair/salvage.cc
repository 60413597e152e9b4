#include "dump/repair/salvage.h"

#include "base/interrupt.h"
#include "base/message.h"
#include "base/text.h"
#include "json/members.h"
#include "json/parser.h"
#include "json/scan.h"

namespace msprobe {
namespace {

using Step = MemberScanner::Step;

constexpr size_t kReleaseBytes = size_t{64} << 20;

/// Other tools read the result with parsers that take neither bytes that are not UTF-8 nor control characters.
bool IsPlainText(std::string_view key) {
  if (!IsUtf8(key)) return false;
  for (const char c : key) {
    if (static_cast<unsigned char>(c) < 0x20) return false;
  }
  return true;
}

class Salvager {
 public:
  Salvager(const MappedFile& file, SalvageKind kind, Salvage* found,
           const std::function<Status(std::string_view)>& write)
      : file_(file), kind_(kind), found_(found), write_(write) {}

  Status Run() {
    MSP_ASSIGN_OR_RETURN(const JsonText json, OpenObject(file_, kind_ == SalvageKind::kDump ? "a dump" : "an object"));
    text_ = json.text;
    *found_ = Salvage();
    MSP_RETURN_IF_ERROR(Emit("{"));
    size_t end = json.begin;
    Step last = Step::kEnd;
    MSP_RETURN_IF_ERROR(Members(json.begin, 1, &end, &last));
    if (kind_ == SalvageKind::kDump && !has_data_) {
      return BadInput(Msg("{} ends or breaks at byte {}, before its \"data\": nothing can be recovered, dump again",
                          file_.path(), end));
    }
    if (last == Step::kEnd) {
      const size_t rest = SkipSpace(text_, end);
      if (rest < text_.size()) Trouble(Msg("has something behind its end at byte {}", rest));
    }
    if (text_.size() < file_.text().size()) Trouble(Msg("ends in NUL bytes from byte {}", text_.size()));
    found_->bytes_lost = last == Step::kEnd ? 0 : file_.text().size() - last_good_;
    found_->whole = found_->trouble.empty() && found_->broken == 0;
    return OkStatus();
  }

 private:
  Status Emit(std::string_view text) { return write_ ? write_(text) : OkStatus(); }

  void Trouble(Message what) {
    if (found_->trouble.empty()) found_->trouble = std::move(what);
  }

  bool Readable(const Member& m) {
    if (!IsPlainText(m.key)) return false;
    if (m.escaped && !UnescapeKey(file_, m.key).ok()) return false;
    const std::string_view value = text_.substr(m.begin, m.end - m.begin);
    // A byte order mark is passed over at the begin of a text, and is none here.
    return static_cast<unsigned char>(value.front()) < 0x80 && IsUtf8(value) &&
           ParseJson(value, file_.path(), &doc_, m.begin).ok();
  }

  /// The members of the object behind whose '{' `pos` is. *end is where it ended, *last how.
  Status Members(size_t pos, int depth, size_t* end, Step* last) {
    const bool entries = (depth == 1) == (kind_ == SalvageKind::kFlat);
    MemberScanner scanner(text_, pos);
    Member m;
    bool any = false;
    for (;;) {
      *last = scanner.NextKey(&m);
      if (*last == Step::kMember && depth == 1 && kind_ == SalvageKind::kDump && m.key == "data" && !has_data_ &&
          text_[m.begin] == '{') {
        has_data_ = true;
        last_good_ = m.begin + 1;
        MSP_RETURN_IF_ERROR(Separate(depth, &any));
        MSP_RETURN_IF_ERROR(Emit("\"data\": {"));
        MSP_RETURN_IF_ERROR(Members(m.begin + 1, depth + 1, end, last));
        if (*last != Step::kEnd) return Emit("\n}");
        scanner.Continue(*end);
        continue;
      }
      if (*last == Step::kMember) *last = scanner.SkipValue(&m);
      if (*last != Step::kMember) break;
      MSP_RETURN_IF_ERROR(Take(m, depth, entries, &any));
    }
    *end = scanner.position();
    if (*last == Step::kTruncated) Trouble(Msg("ends without its closing braces at byte {}", text_.size()));
    if (*last == Step::kBad) Trouble(Msg("is damaged at byte {}", *end));
    if (any) MSP_RETURN_IF_ERROR(Emit(std::string("\n").append(static_cast<size_t>(depth - 1), ' ')));
    return Emit("}");
  }

  Status Take(const Member& m, int depth, bool entry, bool* any) {
    last_good_ = m.end;
    if (m.end - released_ >= kReleaseBytes) {
      if (InterruptRequested()) return Interrupted();
      file_.Release(released_, m.begin);
      released_ = m.begin;
    }
    if (!Readable(m)) {
      ++found_->broken;
      return OkStatus();
    }
    if (entry) ++found_->entries;
    MSP_RETURN_IF_ERROR(Separate(depth, any));
    // Not what stands between the two: damage may have put anything there.
    MSP_RETURN_IF_ERROR(Emit({m.key.data() - 1, m.key.size() + 2}));
    MSP_RETURN_IF_ERROR(Emit(": "));
    return Emit(text_.substr(m.begin, m.end - m.begin));
  }

  Status Separate(int depth, bool* any) {
    std::string text = *any ? ",\n" : "\n";
    *any = true;
    return Emit(text.append(static_cast<size_t>(depth), ' '));
  }

  const MappedFile& file_;
  const SalvageKind kind_;
  Salvage* found_;
  const std::function<Status(std::string_view)>& write_;
  std::string_view text_;
  size_t last_good_ = 0, released_ = 0;
  bool has_data_ = false;
  JsonDoc doc_;
};

}  // namespace

Status SalvageFile(const MappedFile& file, SalvageKind kind, Salvage* found,
                   const std::function<Status(std::string_view)>& write) {
  return Salvager(file, kind, found, write).Run();
}

}  // namespace msprobe
