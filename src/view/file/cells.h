// The JSON texts that the columns of a .vis.db hold. They come from a file, so nothing here fails: what is malformed is
// empty.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace msprobe::view {

/// One tensor or scalar of a node with its figures, all as text and in the file's order.
struct ViewRow {
  std::string name;
  std::vector<std::pair<std::string, std::string>> values;
};

/// `{"item": {"key": "text" | number | null, ...}, ...}`; numbers keep the digits of the file, nested values become
/// JSON.
std::vector<ViewRow> ParseRows(std::string_view json);
/// Texts of a JSON list, numbers as their digits; other elements are skipped.
std::vector<std::string> ParseTexts(std::string_view json);
/// Integers of a JSON list.
std::vector<int64_t> ParseInts(std::string_view json);
/// Last text of a JSON list, "" when there is none: the partner in a matched_node_link.
std::string LastText(std::string_view json);
/// `json` when it is a well-formed, non-empty JSON object that can be sent on as it is; "" otherwise.
std::string_view ObjectText(std::string_view json);

}  // namespace msprobe::view
