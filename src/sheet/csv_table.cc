#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "sheet/table.h"

namespace msprobe {
namespace {

/// Bytes that need a look: what makes csv quote a field, and ';'.
constexpr std::array<bool, 256> MakeSpecial() {
  std::array<bool, 256> out{};
  for (const char c : {',', '"', '\r', '\n', ';'}) out[static_cast<unsigned char>(c)] = true;
  return out;
}
constexpr std::array<bool, 256> kSpecial = MakeSpecial();

bool StartsFormula(std::string_view s) {
  if (s.empty()) return false;
  if (s[0] != '\0' && std::strchr("=+-@%\t\r\n", s[0])) return true;
  for (const std::string_view wide : {"＝", "＋", "－", "＠", "％"}) {
    if (StartsWith(s, wide)) return true;
  }
  return false;
}

/// "-0.5;1.5": the statistics of items that were joined.
bool IsNumberList(std::string_view s) {
  const std::string copy(s);
  const char* at = copy.c_str();
  for (;;) {
    char* end = nullptr;
    std::strtod(at, &end);
    if (end == at) return false;
    if (*end == '\0') return end == copy.c_str() + copy.size();
    if (*end != ';') return false;
    at = end + 1;
  }
}

/// `text` as cells show it: what a spreadsheet would run as a formula gets an apostrophe in front of it. A view of
/// `text` or of `own`.
std::string_view Disarmed(std::string_view text, bool lists, std::string* own) {
  const bool formula = StartsFormula(text);
  if ((!formula && !lists) || IsNumberList(text)) return text;  // numbers may start with a sign
  own->clear();
  if (formula) *own += '\'';
  for (size_t i = 0; i < text.size(); ++i) {
    *own += text[i];
    // Where ';' separates fields, what follows it starts one.
    if (text[i] == ';' && StartsFormula(text.substr(i + 1))) *own += '\'';
  }
  return *own;
}

void AppendQuoted(std::string* out, std::string_view s) {
  *out += '"';
  for (const char c : s) {
    if (c == '"') *out += '"';
    *out += c;
  }
  *out += '"';
}

/// A spreadsheet takes a bare inf for the name of a cell range; with a space in front it is text.
bool NeedsSpace(const Cell& cell) {
  return cell.kind == Cell::Kind::kNumber && cell.text.empty() && std::isinf(cell.number);
}

class CsvTable : public ResultTable {
 public:
  CsvTable(const TableSpec& spec, uint64_t rows_per_file) : spec_(spec), rows_per_file_(rows_per_file) {
    for (const std::string& column : spec.columns) {
      if (!header_.empty()) header_ += ',';
      AppendCsvField(&header_, column);
    }
    header_ += '\n';
    if (!spec.shared) return;
    for (const std::string& text : *spec.shared) AppendCsvField(&shared_.emplace_back(), text);
  }

  const std::vector<std::string>& paths() const override { return paths_; }

  Status Open() {
    if (!files_.empty()) MSP_RETURN_IF_ERROR(files_.back()->Rest());
    MSP_ASSIGN_OR_RETURN(OutputFile file,
                         OutputFile::Create(files_.empty() ? spec_.path : PartPath(files_.size() + 1)));
    files_.push_back(std::make_unique<OutputFile>(std::move(file)));
    rows_ = 0;
    return files_.back()->Write(header_);
  }

  void AppendRow(const std::vector<Cell>& cells, Cell::Color, RowBlock* block) const override {
    std::string* out = &block->bytes;
    for (const Cell& cell : cells) {
      if (cell.kind == Cell::Kind::kText) {
        AppendCsvField(out, cell.text);
      } else if (cell.kind == Cell::Kind::kShared) {
        *out += shared_[static_cast<size_t>(cell.integer)];
      } else {
        if (NeedsSpace(cell)) *out += ' ';
        cell.AppendText(out);
      }
      *out += ',';
    }
    if (cells.empty()) *out += ',';
    out->back() = '\n';
    block->row_ends.push_back(out->size());
  }

  Status Take(RowBlock&& block) override {
    std::string_view bytes = block.bytes;
    size_t from = 0, row = 0;
    while (row < block.row_ends.size()) {
      if (rows_ == rows_per_file_) MSP_RETURN_IF_ERROR(Open());
      const size_t take = static_cast<size_t>(std::min<uint64_t>(block.row_ends.size() - row, rows_per_file_ - rows_));
      const size_t to = block.row_ends[row + take - 1];
      MSP_RETURN_IF_ERROR(files_.back()->Write(bytes.substr(from, to - from)));
      from = to;
      row += take;
      rows_ += take;
    }
    return OkStatus();
  }

  Status Commit() override {
    // Only now is it known whether the first file is a part.
    for (size_t i = 0; i < files_.size(); ++i) {
      const Status status = files_[i]->CommitResult(files_.size() > 1 ? PartPath(i + 1) : std::string());
      if (!status.ok()) {
        for (const std::string& done : paths_) std::remove(done.c_str());
        paths_.clear();
        return status;
      }
      paths_.push_back(files_[i]->path());
    }
    return OkStatus();
  }

 private:
  std::string PartPath(size_t part) const {
    const size_t dot = spec_.path.rfind('.');
    return spec_.path.substr(0, dot) + "_part_" + std::to_string(part) + spec_.path.substr(dot);
  }

  const TableSpec spec_;
  const uint64_t rows_per_file_;
  std::string header_;
  std::vector<std::string> shared_;  // as csv fields
  std::vector<std::unique_ptr<OutputFile>> files_;
  uint64_t rows_ = 0;  // in the last file
  std::vector<std::string> paths_;
};

}  // namespace

void AppendCsvField(std::string* out, std::string_view text) {
  bool lists = false, quote = false;
  for (const char c : text) {
    if (!kSpecial[static_cast<unsigned char>(c)]) continue;
    (c == ';' ? lists : quote) = true;
  }
  std::string own;
  text = Disarmed(text, lists, &own);
  if (quote) {
    AppendQuoted(out, text);
  } else {
    *out += text;
  }
}

void AppendCsvText(const Cell& cell, std::string* out) {
  if (cell.kind != Cell::Kind::kText) {
    if (NeedsSpace(cell)) *out += ' ';
    return cell.AppendText(out);
  }
  std::string own;
  *out += Disarmed(cell.text, cell.text.find(';') != std::string_view::npos, &own);
}

std::string StackCell(const std::vector<std::string>& frames) {
  std::string out = "[";
  for (const std::string& frame : frames) {
    if (out.size() > 1) out += ", ";
    AppendPyStrRepr(out, frame);
  }
  return out + "]";
}

bool IsWorkbook(std::string_view path) { return EndsWith(path, ".xlsx"); }

StatusOr<std::unique_ptr<ResultTable>> CreateTable(const TableSpec& spec, uint64_t total_rows) {
  return IsWorkbook(spec.path) ? CreateXlsxTable(spec, total_rows) : CreateCsvTable(spec);
}

void AppendTextRow(const ResultTable& table, const std::vector<std::string_view>& texts, RowBlock* block) {
  std::vector<Cell> cells;
  for (const std::string_view text : texts) cells.push_back(Cell::Text(text));
  table.AppendRow(cells, Cell::Color::kNone, block);
}

StatusOr<std::unique_ptr<ResultTable>> CreateCsvTable(const TableSpec& spec, uint64_t rows_per_file) {
  auto table = std::make_unique<CsvTable>(spec, rows_per_file);
  MSP_RETURN_IF_ERROR(table->Open());
  return std::unique_ptr<ResultTable>(std::move(table));
}

}  // namespace msprobe
