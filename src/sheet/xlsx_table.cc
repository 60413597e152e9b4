#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/message.h"
#include "base/text.h"
#include "sheet/table.h"
#include "sheet/workbook_check.h"
#include "sheet/xlsx_library.h"

namespace msprobe {
namespace {

constexpr size_t kMaxCellChars = 32767;  // a limit of the file format

class XlsxTable : public ResultTable {
 public:
  XlsxTable(const TableSpec& spec, const XlsxLibrary& library, uint64_t total_rows, uint64_t rows_per_sheet)
      : spec_(spec),
        library_(library),
        temp_(spec.path),
        final_path_(spec.path),
        check_(library, spec.path),
        total_rows_(total_rows) {
    if (total_rows < rows_per_sheet) {
      slice_ = UINT64_MAX;
    } else {
      const uint64_t sheets = (total_rows + rows_per_sheet - 1) / rows_per_sheet;
      slice_ = (total_rows + sheets - 1) / sheets;
    }
  }
  ~XlsxTable() override {
    if (book_) library_.free(book_);
  }

  const std::vector<std::string>& paths() const override { return paths_; }

  Status Open() {
    lxw_workbook_options options{};
    options.constant_memory = 1;
    options.use_zip64 = 1;
    options.tmpdir = directory_.data();  // the rows wait there until the end: /tmp may be small
    // The library opens the file only when it is closed; a directory that cannot be written is told now.
    MSP_ASSIGN_OR_RETURN(const OutputFile probe, OutputFile::Create(temp_.path()));
    book_ = library_.new_workbook(temp_.path().c_str(), &options);
    if (!book_) return InternalError(Msg("cannot start the workbook {}: out of memory?", final_path_));
    styles_ = library_.AddStyles(book_);
    return AddSheet();
  }

  void AppendRow(const std::vector<Cell>& cells, Cell::Color color, RowBlock* block) const override {
    for (const Cell& cell : cells) block->cells.push_back(Pack(cell, color, &block->bytes));
    block->row_ends.push_back(block->cells.size());
  }

  Status Take(RowBlock&& block) override {
    MSP_RETURN_IF_ERROR(check_.Look(sheet_));
    size_t at = 0;
    for (const uint64_t end : block.row_ends) {
      if (rows_ == slice_) MSP_RETURN_IF_ERROR(AddSheet());
      MSP_RETURN_IF_ERROR(WriteRow(block.cells.data() + at, end - at, block.bytes));
      at = end;
      ++rows_;
    }
    return OkStatus();
  }

  Status Commit() override {
    MSP_RETURN_IF_ERROR(check_.EndSheet(sheet_));
    MSP_RETURN_IF_ERROR(check_.BeforeClose());
    const lxw_error error = library_.close(std::exchange(book_, nullptr));
    if (error != LXW_NO_ERROR) return Failed(error);
    MSP_RETURN_IF_ERROR(check_.AfterClose(temp_.path()));
    if (InterruptRequested()) return Interrupted();  // packing a large workbook takes seconds
    MSP_RETURN_IF_ERROR(temp_.CommitResult());
    paths_.push_back(temp_.final_path());
    return OkStatus();
  }

 private:
  Status Failed(lxw_error error) const {
    return InternalError(
        Msg("cannot write {}: {}; free space or choose another -o", final_path_, library_.error_text(error)));
  }

  Status AddSheet() {
    MSP_RETURN_IF_ERROR(check_.EndSheet(sheet_));
    const std::string name = slice_ == UINT64_MAX ? spec_.sheet : "part_" + std::to_string(sheets_);
    ++sheets_;
    sheet_ = library_.add_sheet(book_, name.c_str());
    if (!sheet_) return InternalError(Msg("cannot add the sheet {} to {}: out of memory?", name, final_path_));
    rows_ = 0;
    lxw_col_t column = 0;
    library_.SetUpSheet(sheet_, std::min(slice_, total_rows_), spec_.columns.size());
    for (const std::string& title : spec_.columns) {
      MSP_RETURN_IF_ERROR(WriteText(0, column++, title, styles_.header));
    }
    return OkStatus();
  }

  Status WriteText(lxw_row_t row, lxw_col_t column, std::string text, lxw_format* style) {
    // The limit counts characters; fewer bytes than that are safe, longer text is cut between two of them.
    if (text.size() > kMaxCellChars) {
      size_t cut = kMaxCellChars;
      while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
      text.resize(cut);
    }
    const lxw_error error = library_.write_string(sheet_, row, column, text.c_str(), style);
    return error == LXW_NO_ERROR ? OkStatus() : Failed(error);
  }

  static PackedCell Pack(const Cell& cell, Cell::Color row_color, std::string* texts) {
    using Kind = Cell::Kind;
    PackedCell out;
    out.color = cell.color == Cell::Color::kNone ? row_color : cell.color;
    if (cell.kind == Kind::kNumber && std::isfinite(cell.number)) {
      out.kind = Kind::kNumber;
      out.number = cell.number;
    } else if (cell.kind == Kind::kInteger || cell.kind == Kind::kUnsigned) {
      out.kind = Kind::kNumber;
      out.number = cell.kind == Kind::kInteger ? static_cast<double>(cell.integer)
                                               : static_cast<double>(static_cast<uint64_t>(cell.integer));
    } else if (cell.kind == Kind::kBool || cell.kind == Kind::kShared) {
      out.kind = cell.kind;
      out.at = static_cast<uint64_t>(cell.integer);
    } else {
      out.at = texts->size();
      cell.AppendText(texts);
      out.size = static_cast<uint32_t>(texts->size() - out.at);
    }
    return out;
  }

  lxw_format* StyleOf(Cell::Color color) const {
    if (color == Cell::Color::kNone || color == Cell::Color::kClear) return nullptr;
    return color == Cell::Color::kRed ? styles_.red : styles_.yellow;
  }

  Status WriteRow(const PackedCell* cells, size_t count, const std::string& texts) {
    const lxw_row_t row = static_cast<lxw_row_t>(rows_ + 1);
    for (size_t i = 0; i < count; ++i) {
      const PackedCell& cell = cells[i];
      const lxw_col_t column = static_cast<lxw_col_t>(i);
      lxw_format* style = StyleOf(cell.color);
      lxw_error error = LXW_NO_ERROR;
      if (cell.kind == Cell::Kind::kNumber) {
        error = library_.write_number(sheet_, row, column, cell.number, style);
      } else if (cell.kind == Cell::Kind::kBool) {
        error = library_.write_bool(sheet_, row, column, cell.at != 0, style);
      } else {
        const bool shared = cell.kind == Cell::Kind::kShared;
        MSP_RETURN_IF_ERROR(
            WriteText(row, column, shared ? (*spec_.shared)[cell.at] : texts.substr(cell.at, cell.size), style));
      }
      if (error != LXW_NO_ERROR) return Failed(error);
    }
    return OkStatus();
  }

  const TableSpec spec_;
  const XlsxLibrary& library_;
  TempPath temp_;
  const std::string final_path_;
  std::string directory_{DirName(final_path_)};
  WorkbookCheck check_;
  const uint64_t total_rows_;
  XlsxStyles styles_;
  uint64_t slice_ = 0, rows_ = 0;
  int sheets_ = 0;
  lxw_workbook* book_ = nullptr;
  lxw_worksheet* sheet_ = nullptr;
  std::vector<std::string> paths_;
};

}  // namespace

StatusOr<std::unique_ptr<ResultTable>> CreateXlsxTable(const TableSpec& spec, uint64_t total_rows,
                                                       uint64_t rows_per_sheet) {
  MSP_ASSIGN_OR_RETURN(const XlsxLibrary* library, XlsxLibrary::Get());
  auto table = std::make_unique<XlsxTable>(spec, *library, total_rows, rows_per_sheet);
  MSP_RETURN_IF_ERROR(table->Open());
  return std::unique_ptr<ResultTable>(std::move(table));
}

}  // namespace msprobe
