#include "json/members.h"

#include "base/message.h"
#include "base/text.h"
#include "json/parser.h"
#include "json/scan.h"

namespace msprobe {

MemberScanner::Step MemberScanner::NextKey(Member* m) {
  pos_ = SkipSpace(text_, pos_);
  if (!first_) {
    if (pos_ == text_.size()) return Step::kTruncated;
    if (text_[pos_] == ',') {
      pos_ = SkipSpace(text_, pos_ + 1);
    } else if (text_[pos_] != '}') {
      return Bad("',' or '}'");
    }
  }
  first_ = false;
  if (pos_ == text_.size()) return Step::kTruncated;
  if (text_[pos_] == '}') {
    ++pos_;
    return Step::kEnd;
  }
  if (text_[pos_] != '"') return Bad("a name in double quotes or '}'");
  const size_t start = pos_ + 1;
  const size_t end = FindStringEnd(text_, start, &m->escaped);
  if (end == kNoEnd) return Step::kTruncated;
  m->key = text_.substr(start, end - start);
  m->escaped = m->escaped || !IsUtf8(m->key);
  pos_ = SkipSpace(text_, end + 1);
  if (pos_ == text_.size()) return Step::kTruncated;
  if (text_[pos_] != ':') return Bad("':'");
  m->begin = pos_ = SkipSpace(text_, pos_ + 1);
  return pos_ == text_.size() ? Step::kTruncated : Step::kMember;
}

MemberScanner::Step MemberScanner::SkipValue(Member* m) {
  const char c = text_[pos_];
  if (c == '{' || c == '[') {
    m->end = FindContainerEnd(text_, pos_);
    if (m->end == kNoEnd) return Step::kTruncated;
  } else if (c == '"') {
    bool escaped;
    const size_t quote = FindStringEnd(text_, pos_ + 1, &escaped);
    if (quote == kNoEnd) return Step::kTruncated;
    m->end = quote + 1;
  } else {
    const size_t stop = text_.find_first_of(",}] \n\r\t\":{[", pos_);
    if (stop == std::string_view::npos) return Step::kTruncated;
    if (stop == pos_) return Bad("a value");
    m->end = stop;
  }
  pos_ = m->end;
  return Step::kMember;
}

MemberScanner::Step MemberScanner::Next(Member* m) {
  const Step step = NextKey(m);
  return step == Step::kMember ? SkipValue(m) : step;
}

StatusOr<JsonText> OpenObject(const MappedFile& file, std::string_view what) {
  JsonText json;
  json.text = file.text();
  while (!json.text.empty() && json.text.back() == '\0') json.text.remove_suffix(1);
  if (json.text.empty()) {
    return BadInput(file.text().empty()
                        ? Msg("{} is empty: expected {}, give another file or dump again", file.path(), KnownText(what))
                        : Msg("{} holds nothing but NUL bytes: expected {}, give another file or dump again",
                              file.path(), KnownText(what)));
  }
  const size_t start = SkipSpace(json.text, json.text.substr(0, 3) == "\xEF\xBB\xBF" ? 3 : 0);
  if (start == json.text.size() || json.text[start] != '{') {
    const Message found = start == json.text.size() ? KnownText("the end of the file") : ShownByte(json.text[start]);
    return BadInput(Msg("{} is not {}: expected '{{' at byte {} but found {}, check the path", file.path(),
                        KnownText(what), start, found));
  }
  json.begin = start + 1;
  return json;
}

Status CheckEnd(const MappedFile& file, std::string_view text, size_t end) {
  const size_t rest = SkipSpace(text, end);
  if (rest == text.size()) return OkStatus();
  return BadByte(file, text, rest, "the end of the file");
}

Status BadByte(const MappedFile& file, std::string_view text, size_t pos, std::string_view expected) {
  const Message found = pos < text.size() ? ShownByte(text[pos]) : KnownText("the end of the file");
  return BadInput(Msg("{} is damaged at byte {}: expected {} but found {}, restore the file or dump again", file.path(),
                      pos, KnownText(expected), found));
}

std::string Shown(std::string_view name) {
  constexpr size_t kMost = 200;
  std::string out;
  AppendJsonString(out, name.substr(0, kMost), /*ascii=*/false);
  if (name.size() > kMost) out += "...";
  return out;
}

StatusOr<std::string> UnescapeKey(const MappedFile& file, std::string_view key) {
  // The quotes stand around the key in the file.
  const std::string_view quoted(key.data() - 1, key.size() + 2);
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(quoted, file.path(), &doc, static_cast<uint64_t>(quoted.data() - file.text().data())));
  return std::string(doc.Text());
}

}  // namespace msprobe
