#include "sheet/workbook.h"

#include <cmath>
#include <utility>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "sheet/workbook_check.h"
#include "sheet/xlsx_library.h"

namespace msprobe {
namespace {

constexpr size_t kMostChars = 32'767, kMostRows = 1'048'575;  // limits of the file format

class BookWriter {
 public:
  BookWriter(const XlsxLibrary& library, const std::string& path)
      : library_(library), temp_(path), directory_(DirName(path)), check_(library, path) {}
  ~BookWriter() {
    if (book_) library_.free(book_);
  }

  Status Write(const std::vector<Sheet>& sheets) {
    lxw_workbook_options options{};
    options.constant_memory = 1;
    options.use_zip64 = 1;
    options.tmpdir = directory_.data();
    MSP_ASSIGN_OR_RETURN(const OutputFile probe, OutputFile::Create(temp_.path()));  // can the directory be written?
    book_ = library_.new_workbook(temp_.path().c_str(), &options);
    if (!book_) return InternalError(Msg("cannot start the workbook {}: out of memory?", temp_.final_path()));
    styles_ = library_.AddStyles(book_);
    for (const Sheet& sheet : sheets) MSP_RETURN_IF_ERROR(WriteSheet(sheet));
    MSP_RETURN_IF_ERROR(check_.EndSheet(sheet_));
    MSP_RETURN_IF_ERROR(check_.BeforeClose());
    const lxw_error error = library_.close(std::exchange(book_, nullptr));
    if (error != LXW_NO_ERROR) return Failed(error);
    MSP_RETURN_IF_ERROR(check_.AfterClose(temp_.path()));
    return temp_.Commit();
  }

 private:
  Status Failed(lxw_error error) const {
    return InternalError(
        Msg("cannot write {}: {}; free space or choose another -o", temp_.final_path(), library_.error_text(error)));
  }

  Status WriteSheet(const Sheet& sheet) {
    MSP_RETURN_IF_ERROR(check_.EndSheet(sheet_));
    sheet_ = library_.add_sheet(book_, sheet.name.c_str());
    if (!sheet_) return InternalError(Msg("cannot add the sheet {} to {}", sheet.name, temp_.final_path()));
    if (sheet.rows.size() > kMostRows) {
      return BadInput(Msg("{}: the sheet {} has more rows than a workbook can hold", temp_.final_path(), sheet.name));
    }
    library_.SetUpSheet(sheet_, sheet.rows.size(), sheet.columns.size());
    lxw_col_t column = 0;
    for (const std::string& title : sheet.columns) {
      MSP_RETURN_IF_ERROR(WriteCell(0, column++, SheetValue::Of(title), styles_.header));
    }
    for (size_t row = 0; row < sheet.rows.size(); ++row) {
      column = 0;
      for (const SheetValue& value : sheet.rows[row]) {
        lxw_format* style = value.color == Cell::Color::kRed      ? styles_.red
                            : value.color == Cell::Color::kYellow ? styles_.yellow
                                                                  : nullptr;
        MSP_RETURN_IF_ERROR(WriteCell(static_cast<lxw_row_t>(row + 1), column++, value, style));
      }
      if (row % 4096 == 0) MSP_RETURN_IF_ERROR(check_.Look(sheet_));
    }
    return OkStatus();
  }

  Status WriteCell(lxw_row_t row, lxw_col_t column, const SheetValue& value, lxw_format* style) {
    using Kind = SheetValue::Kind;
    lxw_error error = LXW_NO_ERROR;
    if (value.kind == Kind::kNone) return OkStatus();
    if (value.kind == Kind::kBool) {
      error = library_.write_bool(sheet_, row, column, value.number != 0, style);
    } else if (value.kind == Kind::kNumber && std::isfinite(value.number)) {
      error = library_.write_number(sheet_, row, column, value.number, style);
    } else {
      std::string text = value.kind == Kind::kNumber ? PyRepr(value.number) : ToUtf8(value.text);
      if (text.size() > kMostChars) {
        size_t cut = kMostChars;
        while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
        text.resize(cut);
      }
      error = library_.write_string(sheet_, row, column, text.c_str(), style);
    }
    return error == LXW_NO_ERROR ? OkStatus() : Failed(error);
  }

  const XlsxLibrary& library_;
  TempPath temp_;
  std::string directory_;
  WorkbookCheck check_;
  XlsxStyles styles_;
  lxw_workbook* book_ = nullptr;
  lxw_worksheet* sheet_ = nullptr;
};

}  // namespace

Status WriteWorkbook(const std::string& path, const std::vector<Sheet>& sheets) {
  MSP_ASSIGN_OR_RETURN(const XlsxLibrary* library, XlsxLibrary::Get());
  return BookWriter(*library, path).Write(sheets);
}

}  // namespace msprobe
