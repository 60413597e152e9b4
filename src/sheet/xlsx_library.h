// libxlsxwriter, loaded when the first workbook is asked for: the command starts and runs without it.
#pragma once

#include <xlsxwriter.h>

#include "base/status.h"

namespace msprobe {

/// The looks of cells; of a workbook, which owns them.
struct XlsxStyles {
  lxw_format* header = nullptr;
  lxw_format *red = nullptr, *yellow = nullptr;
};

struct XlsxLibrary {
  decltype(&workbook_new_opt) new_workbook = nullptr;
  decltype(&workbook_add_worksheet) add_sheet = nullptr;
  decltype(&worksheet_write_string) write_string = nullptr;
  decltype(&worksheet_write_number) write_number = nullptr;
  decltype(&worksheet_write_boolean) write_bool = nullptr;
  decltype(&worksheet_write_blank) write_blank = nullptr;
  decltype(&worksheet_freeze_panes) freeze = nullptr;
  decltype(&worksheet_autofilter) filter = nullptr;
  decltype(&worksheet_set_column) set_column = nullptr;
  decltype(&workbook_add_format) add_format = nullptr;
  decltype(&format_set_bold) set_bold = nullptr;
  decltype(&format_set_bg_color) set_background = nullptr;
  decltype(&workbook_close) close = nullptr;
  decltype(&lxw_workbook_free) free = nullptr;
  decltype(&lxw_strerror) error_text = nullptr;
  bool same_version = false;  // as the header: the fields of a sheet are where it says

  /// kInternal with what to install when the library is not there.
  static StatusOr<const XlsxLibrary*> Get();
  XlsxStyles AddStyles(lxw_workbook* book) const;
  /// The first row stays in sight and has filters; the first column is wide enough for most names.
  void SetUpSheet(lxw_worksheet* sheet, uint64_t rows, size_t columns) const;

 private:
  static XlsxLibrary Load();
};

}  // namespace msprobe
