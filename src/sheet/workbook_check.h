// Whether a workbook holds all that was written to it: libxlsxwriter does not look at the errors of its temporary
// files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "sheet/xlsx_library.h"

namespace msprobe {

/// Uncompressed bytes of xl/worksheets/sheet1.xml, sheet2.xml, ... as the directory of the zip file tells them.
StatusOr<std::vector<uint64_t>> SheetSizes(const std::string& path);

/// Looks at the rows of each sheet, which wait in a temporary file beside the result until the workbook is closed: the
/// library neither sees that they could not be written nor that the workbook made from them is too short. Its errors
/// are kInternal: the disk is full.
class WorkbookCheck {
 public:
  /// Error texts name `path`, where the workbook shall stand.
  WorkbookCheck(const XlsxLibrary& library, const std::string& path);
  /// May be asked at any time.
  Status Look(const lxw_worksheet* sheet) const;
  /// No more rows come to this sheet; null: there is none yet.
  Status EndSheet(lxw_worksheet* sheet);
  /// Before the workbook is closed: is there room? The library would say so itself, in lines of its own.
  Status BeforeClose() const;
  /// `file`: the closed workbook.
  Status AfterClose(const std::string& file) const;

 private:
  Status NoSpace() const;

  const XlsxLibrary& library_;
  const std::string path_, directory_;
  std::vector<uint64_t> sheet_bytes_;  // of the rows of each ended sheet
};

}  // namespace msprobe
