// All rows of a range of one of our tables, as quickly as the file can be read.
#pragma once

#include <string_view>
#include <vector>

#include "view/file/table_pages.h"
#include "view/file/vis_file.h"

namespace msprobe::view {

/// Rows of "msprobe_<...>" whose ids, the column `key`, are from `first` to `last`.
struct RowQuery {
  std::string_view table, key;
  std::vector<std::string_view> columns;
  int64_t first = 0, last = -1;
};

/// Takes them in the order of their ids. Nothing is taken when there is no such table.
Status ReadRows(const VisFile& file, const RowQuery& query, const TakeSqlRow& take);

}  // namespace msprobe::view
