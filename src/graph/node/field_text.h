// The texts of graphs: everything in a row of theirs is text, written the way existing readers expect.
#pragma once

#include <string>
#include <string_view>

#include "compare/values/item_view.h"
#include "compare/values/stat_value.h"

namespace msprobe {

/// The task of a graph file by what was compared: "summary", "md5", "all", "structure".
std::string_view GraphTaskName(CompareMode mode);

/// The text of a field: quotes dropped, None and null as "null", decimal texts rounded to six places.
std::string FieldText(const StatValue& v);
/// The same as the inside of a JSON string.
void AppendField(std::string& out, const StatValue& v);

/// target - golden, integers as integers: "0.5", "-3", "Nan", "inf\t", "N/A".
void AppendDiffText(std::string& out, const StatDiff& d);
/// The relative difference: "12.345679%", "N/A".
void AppendRelText(std::string& out, const StatDiff& d);
/// What a row without a partner has in their place.
inline constexpr std::string_view kNoDiffText = " ";

/// `text` as the inside of a JSON string: what AppendJsonString writes between its quotes.
void AppendJsonBody(std::string& out, std::string_view text);
/// True when `text` is its own inside of a JSON string.
bool IsPlainJson(std::string_view text);
/// "12.3456789%" -> "12.345679%". Texts of another form stay as they are.
void RoundDecimalText(std::string* text);

}  // namespace msprobe
