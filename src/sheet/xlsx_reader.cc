// Workbooks: a zip archive of XML. zlib unpacks, expat parses; both see a piece at a time.
#include <expat.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "sheet/sheet_reader.h"
#include "sheet/zip_members.h"

namespace msprobe {
namespace {

constexpr int kMaxDepth = 40;                              // of XML; sheets have about 6
constexpr uint64_t kMaxToken = 1 << 20;                    // bytes without an event: an endless tag or name
constexpr uint64_t kMaxSharedBytes = uint64_t{512} << 20;  // of texts that cells share
constexpr uint64_t kTightFrom = uint64_t{64} << 20;        // members larger than this ...
constexpr uint64_t kTightRatio = 400;                      // ... are not tables when packed more tightly
constexpr size_t kMaxSheets = 1'000;

/// Texts that cells name by their number, one behind the other.
struct SharedStrings {
  std::string bytes;
  std::vector<uint64_t> ends;
  std::string_view Get(size_t i) const {
    const uint64_t begin = i == 0 ? 0 : ends[i - 1];
    return std::string_view(bytes).substr(begin, ends[i] - begin);
  }
};

/// An XML document in pieces. A subclass gets its elements; what it refuses ends the parsing.
class XmlReader {
 public:
  explicit XmlReader(const std::string& what) : what_(what), parser_(XML_ParserCreate("UTF-8"), XML_ParserFree) {
    if (!parser_) return;
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(parser_.get(), OnStart, OnEnd);
    XML_SetCharacterDataHandler(parser_.get(), OnText);
    XML_SetStartDoctypeDeclHandler(parser_.get(), OnDoctype);
  }
  virtual ~XmlReader() = default;

  Status Feed(std::string_view piece, bool last) {
    if (!parser_) return InternalError(Msg("cannot read {}: out of memory", what_));
    silent_ += piece.size();
    const auto done = XML_Parse(parser_.get(), piece.data(), static_cast<int>(piece.size()), last);
    if (!status_.ok()) return status_;
    if (done != XML_STATUS_OK) {
      return Bad(Msg("{} is not XML: {}", what_, XML_ErrorString(XML_GetErrorCode(parser_.get()))));
    }
    return silent_ > kMaxToken ? Bad(Msg("{} has a tag that does not end", what_)) : OkStatus();
  }

 protected:
  virtual Status Start(std::string_view name, const char** attributes) = 0;
  virtual Status End(std::string_view name) = 0;
  virtual Status Text(std::string_view text) = 0;
  Status Bad(const Message& what) const { return BadInput(Msg("{}: it is not a comparison result", what)); }

  static std::string_view Attribute(const char** attributes, std::string_view name) {
    for (; *attributes; attributes += 2) {
      if (name == attributes[0]) return attributes[1];
    }
    return {};
  }

 protected:
  const std::string what_;

 private:
  /// Without a prefix: "x:row" is a row.
  static std::string_view Local(const char* name) {
    const char* colon = std::strrchr(name, ':');
    return colon ? colon + 1 : name;
  }
  void Note(Status status) {
    silent_ = 0;
    if (status.ok() || !status_.ok()) return;
    status_ = std::move(status);
    XML_StopParser(parser_.get(), XML_FALSE);
  }
  static void OnStart(void* self, const char* name, const char** attributes) {
    auto* reader = static_cast<XmlReader*>(self);
    if (++reader->depth_ > kMaxDepth) return reader->Note(reader->Bad(Msg("{} is nested too deeply", reader->what_)));
    reader->Note(reader->Start(Local(name), attributes));
  }
  static void OnEnd(void* self, const char* name) {
    auto* reader = static_cast<XmlReader*>(self);
    --reader->depth_;
    reader->Note(reader->End(Local(name)));
  }
  static void OnText(void* self, const char* text, int size) {
    auto* reader = static_cast<XmlReader*>(self);
    if (reader->status_.ok()) reader->Note(reader->Text({text, static_cast<size_t>(size)}));
  }
  static void OnDoctype(void* self, const char*, const char*, const char*, int) {
    auto* reader = static_cast<XmlReader*>(self);
    reader->Note(reader->Bad(Msg("{} declares a document type, which no workbook does", reader->what_)));
  }

  std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser_;
  Status status_;
  uint64_t silent_ = 0;
  int depth_ = 0;
};

/// xl/sharedStrings.xml
class SharedReader : public XmlReader {
 public:
  SharedReader(const std::string& what, SharedStrings* out) : XmlReader(what), out_(out) {}

 private:
  Status Start(std::string_view name, const char**) override {
    if (name == "t") in_text_ = true;
    if (name == "rPh") phonetic_ = true;
    return OkStatus();
  }
  Status End(std::string_view name) override {
    if (name == "t") in_text_ = false;
    if (name == "rPh") phonetic_ = false;
    if (name == "si") out_->ends.push_back(out_->bytes.size());
    return out_->ends.size() > kMaxSharedBytes / 8 ? Bad(Msg("{} has too many texts", what_)) : OkStatus();
  }
  Status Text(std::string_view text) override {
    if (in_text_ && !phonetic_) out_->bytes += text;
    return out_->bytes.size() > kMaxSharedBytes ? Bad(Msg("{} holds more text than fits memory", what_)) : OkStatus();
  }

  SharedStrings* out_;
  bool in_text_ = false, phonetic_ = false;
};

/// xl/worksheets/sheet1.xml
class SheetReader : public XmlReader {
 public:
  SheetReader(const std::string& what, const SharedStrings& shared, const TakeRow& take, uint64_t* rows)
      : XmlReader(what), shared_(shared), take_(take), rows_(rows) {}

 private:
  Status Start(std::string_view name, const char** attributes) override {
    if (name == "row") {
      for (SheetCell& cell : cells_) {
        cell.kind = SheetCell::Kind::kEmpty;
        cell.text.clear();
      }
      used_ = next_ = 0;
    } else if (name == "c") {
      MSP_RETURN_IF_ERROR(Place(Attribute(attributes, "r")));
      type_ = std::string(Attribute(attributes, "t").substr(0, 16));
      text_.clear();
    } else if (name == "v" || name == "t") {
      in_text_ = true;
    } else if (name == "rPh") {
      phonetic_ = true;
    }
    return OkStatus();
  }

  Status End(std::string_view name) override {
    if (name == "v" || name == "t") in_text_ = false;
    if (name == "rPh") phonetic_ = false;
    if (name == "c") return PutCell();
    if (name != "row") return OkStatus();
    if (++*rows_ > kMaxSheetRows) return Bad(Msg("{} has more rows than any result", what_));
    cells_.resize(std::max(used_, size_t{1}));
    const bool first = !std::exchange(any_, true);
    return take_(cells_, first);
  }

  Status Text(std::string_view text) override {
    if (in_text_ && !phonetic_) text_ += text;
    return text_.size() > kMaxSheetCell ? Bad(Msg("{} has a cell that is too long", what_)) : OkStatus();
  }

  /// Column of "AB12"; cells without a reference stand side by side.
  Status Place(std::string_view reference) {
    size_t column = 0;
    for (const char c : reference) {
      if (c < 'A' || c > 'Z') break;
      column = column * 26 + static_cast<size_t>(c - 'A' + 1);
      if (column > kMaxSheetColumns) break;
    }
    column_ = column > 0 ? column - 1 : next_;
    next_ = column_ + 1;
    return column_ >= kMaxSheetColumns ? Bad(Msg("{} has more columns than any result", what_)) : OkStatus();
  }

  Status PutCell() {
    if (cells_.size() <= column_) cells_.resize(column_ + 1);
    used_ = std::max(used_, column_ + 1);
    SheetCell& cell = cells_[column_];
    if (type_ == "s") {
      size_t id = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), id);
      if (error != std::errc() || id >= shared_.ends.size())
        return Bad(Msg("{} names a text that is not there", what_));
      cell.text = shared_.Get(id);
      cell.kind = SheetCell::Kind::kText;
    } else {
      cell.text.swap(text_);
      cell.kind = type_ == "b"                    ? SheetCell::Kind::kBool
                  : type_.empty() || type_ == "n" ? SheetCell::Kind::kNumber
                                                  : SheetCell::Kind::kText;
    }
    if (cell.text.empty()) cell.kind = SheetCell::Kind::kEmpty;
    return OkStatus();
  }

  const SharedStrings& shared_;
  const TakeRow& take_;
  uint64_t* rows_;
  std::vector<SheetCell> cells_;
  size_t column_ = 0, next_ = 0, used_ = 0;
  std::string type_, text_;
  bool in_text_ = false, phonetic_ = false, any_ = false;
};

Status ReadMember(const PackedMember& member, const std::string& path, XmlReader* reader) {
  if (member.size > kMaxSheetBytes || (member.size > kTightFrom && member.size / kTightRatio > member.bytes.size())) {
    return BadInput(Msg("{}: the member {} would unpack to {} bytes, more than any comparison result", path,
                        OneLine(member.name), member.size));
  }
  MSP_RETURN_IF_ERROR(Unpack(member, path, [&](std::string_view piece) { return reader->Feed(piece, false); }));
  return reader->Feed({}, true);
}

/// 3 of "xl/worksheets/sheet3.xml"; 0 for other members.
size_t SheetNumber(std::string_view name) {
  constexpr std::string_view kBefore = "xl/worksheets/sheet", kBehind = ".xml";
  if (!StartsWith(name, kBefore) || !EndsWith(name, kBehind)) return 0;
  const std::string_view digits = name.substr(kBefore.size(), name.size() - kBefore.size() - kBehind.size());
  size_t out = 0;
  if (!IsDigits(digits) || digits.size() > 4) return 0;
  (void)std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return out;
}

}  // namespace

Status ReadXlsxBytes(std::string_view file, const std::string& path, const TakeRow& take) {
  MSP_ASSIGN_OR_RETURN(const std::vector<PackedMember> members, ListZip(file, path));
  SharedStrings shared;
  std::vector<const PackedMember*> sheets;
  for (const PackedMember& member : members) {
    if (SheetNumber(member.name) > 0) sheets.push_back(&member);
    if (member.name != "xl/sharedStrings.xml") continue;
    SharedReader reader(path, &shared);
    MSP_RETURN_IF_ERROR(ReadMember(member, path, &reader));
  }
  if (sheets.empty() || sheets.size() > kMaxSheets) {
    return BadInput(Msg("{} has no sheets, or too many: it is not a comparison result", path));
  }
  std::sort(sheets.begin(), sheets.end(),
            [](const PackedMember* a, const PackedMember* b) { return SheetNumber(a->name) < SheetNumber(b->name); });
  uint64_t rows = 0;
  for (const PackedMember* sheet : sheets) {
    SheetReader reader(path, shared, take, &rows);
    MSP_RETURN_IF_ERROR(ReadMember(*sheet, path, &reader));
  }
  return OkStatus();
}

Status ReadXlsx(const std::string& path, const TakeRow& take) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return ReadXlsxBytes(file.text(), path, take);
}

}  // namespace msprobe
