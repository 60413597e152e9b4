#include "sheet/xlsx_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <type_traits>

#include "base/message.h"

namespace msprobe {

StatusOr<const XlsxLibrary*> XlsxLibrary::Get() {
  static const XlsxLibrary library = Load();
  if (library.error_text) return &library;
  return InternalError(
      Msg("workbooks need libxlsxwriter, which is not installed: install it (Debian: libxlsxwriter4), or leave out "
          "--xlsx to get csv"));
}

#ifdef MSPROBE_XLSX_LINKED
XlsxLibrary XlsxLibrary::Load() {
  return {.new_workbook = workbook_new_opt,
          .add_sheet = workbook_add_worksheet,
          .write_string = worksheet_write_string,
          .write_number = worksheet_write_number,
          .write_bool = worksheet_write_boolean,
          .write_blank = worksheet_write_blank,
          .freeze = worksheet_freeze_panes,
          .filter = worksheet_autofilter,
          .set_column = worksheet_set_column,
          .add_format = workbook_add_format,
          .set_bold = format_set_bold,
          .set_background = format_set_bg_color,
          .close = workbook_close,
          .free = lxw_workbook_free,
          .error_text = lxw_strerror,
          .same_version = true};
}
#else
XlsxLibrary XlsxLibrary::Load() {
  XlsxLibrary out;
  void* handle = nullptr;
  for (const char* name : {"libxlsxwriter.so.4", "libxlsxwriter.so", "libxlsxwriter.so.5", "libxlsxwriter.so.9"}) {
    if ((handle = dlopen(name, RTLD_NOW | RTLD_LOCAL))) break;
  }
  if (!handle) return out;
  const auto load = [&](auto* function, const char* name) {
    using Function = std::remove_pointer_t<decltype(function)>;
    *function = reinterpret_cast<Function>(dlsym(handle, name));
    return *function != nullptr;
  };
  const bool all = load(&out.new_workbook, "workbook_new_opt") && load(&out.add_sheet, "workbook_add_worksheet") &&
                   load(&out.write_string, "worksheet_write_string") &&
                   load(&out.write_number, "worksheet_write_number") &&
                   load(&out.write_bool, "worksheet_write_boolean") &&
                   load(&out.write_blank, "worksheet_write_blank") && load(&out.freeze, "worksheet_freeze_panes") &&
                   load(&out.filter, "worksheet_autofilter") && load(&out.set_column, "worksheet_set_column") &&
                   load(&out.add_format, "workbook_add_format") && load(&out.set_bold, "format_set_bold") &&
                   load(&out.set_background, "format_set_bg_color") && load(&out.close, "workbook_close") &&
                   load(&out.free, "lxw_workbook_free") && load(&out.error_text, "lxw_strerror");
  if (!all) out.error_text = nullptr;
  decltype(&lxw_version_id) version = nullptr;
  out.same_version = load(&version, "lxw_version_id") && version() == LXW_VERSION_ID;
  return out;
}
#endif

XlsxStyles XlsxLibrary::AddStyles(lxw_workbook* book) const {
  XlsxStyles out{add_format(book), add_format(book), add_format(book)};
  if (out.header) set_bold(out.header);
  if (out.red) set_background(out.red, 0xFF0000);
  if (out.yellow) set_background(out.yellow, 0xFFFF00);
  return out;
}

void XlsxLibrary::SetUpSheet(lxw_worksheet* sheet, uint64_t rows, size_t columns) const {
  freeze(sheet, 1, 1);
  const auto last_row = static_cast<lxw_row_t>(std::min<uint64_t>(rows, LXW_ROW_MAX - 1));
  if (columns > 0) filter(sheet, 0, 0, last_row, static_cast<lxw_col_t>(columns - 1));
  set_column(sheet, 0, 0, 60, nullptr);
}

}  // namespace msprobe
