#include <utility>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "sheet/sheet_reader.h"

namespace msprobe {
namespace {

class CsvParser {
 public:
  CsvParser(std::string_view text, const std::string& path) : text_(text), path_(path) {
    if (StartsWith(text_, "\xEF\xBB\xBF")) at_ = 3;
  }

  Status ReadAll(const TakeRow& take) {
    std::vector<SheetCell> cells;
    bool first = true;
    for (uint64_t row = 0; at_ < text_.size(); ++row) {
      if (row == kMaxSheetRows) return Bad(Msg("{} has more rows than any result", path_));
      MSP_RETURN_IF_ERROR(ReadRow(row, &cells));
      if (cells.size() == 1 && cells[0].text.empty()) continue;  // an empty line
      MSP_RETURN_IF_ERROR(take(cells, std::exchange(first, false)));
    }
    return OkStatus();
  }

 private:
  Status Bad(const Message& what) const { return BadInput(Msg("{} (byte {}): is it a comparison result?", what, at_)); }

  Status ReadRow(uint64_t row, std::vector<SheetCell>* cells) {
    size_t used = 0;
    for (bool more = true; more;) {
      if (used == kMaxSheetColumns) return Bad(Msg("{} has more columns than any result in row {}", path_, row + 1));
      if (cells->size() == used) cells->emplace_back();
      SheetCell& cell = (*cells)[used++];
      MSP_RETURN_IF_ERROR(ReadField(&cell.text));
      cell.kind = cell.text.empty() ? SheetCell::Kind::kEmpty : SheetCell::Kind::kText;
      more = at_ < text_.size() && text_[at_] == ',';
      if (more) ++at_;
    }
    cells->resize(used);
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
    return OkStatus();
  }

  Status ReadField(std::string* out) {
    out->clear();
    bool quoted = false;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (!quoted && (c == ',' || c == '\n' || c == '\r')) break;
      ++at_;
      if (c != '"') {
        *out += c;
      } else if (quoted && at_ < text_.size() && text_[at_] == '"') {
        *out += '"';
        ++at_;
      } else {
        quoted = !quoted;
      }
      if (out->size() > kMaxSheetCell) return Bad(Msg("{} has a field longer than any cell", path_));
    }
    return quoted ? Bad(Msg("{} ends within quotes", path_)) : OkStatus();
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
};

}  // namespace

Status ReadCsvText(std::string_view text, const std::string& path, const TakeRow& take) {
  return CsvParser(text, path).ReadAll(take);
}

Status ReadCutCsv(const std::string& path, const TakeRow& take, uint64_t* cut) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  std::string_view text = file.text();
  const size_t end = text.rfind('\n');
  *cut = 0;
  if (end != std::string_view::npos && end + 1 < text.size()) {
    text = text.substr(0, end + 1);
    ++*cut;
  }
  size_t columns = 0;
  return ReadCsvText(text, path, [&](const std::vector<SheetCell>& cells, bool first) {
    if (first) columns = cells.size();
    if (cells.size() >= columns) return take(cells, first);
    ++*cut;
    return OkStatus();
  });
}

Status ReadCsv(const std::string& path, const TakeRow& take) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return ReadCsvText(file.text(), path, take);
}

}  // namespace msprobe
