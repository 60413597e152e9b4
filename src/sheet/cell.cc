#include "sheet/cell.h"

#include "base/text.h"

namespace msprobe {

void Cell::AppendText(std::string* out) const {
  switch (kind) {
    case Kind::kInteger: return AppendInt(*out, integer);
    case Kind::kUnsigned: *out += std::to_string(static_cast<uint64_t>(integer)); return;
    case Kind::kBool: *out += integer ? "True" : "False"; return;
    case Kind::kText:
    case Kind::kWord: *out += text; return;
    case Kind::kShared: return;
    case Kind::kNumber:
    case Kind::kFigure:
    case Kind::kPercent: break;
  }
  if (text.empty()) {
    AppendPyRepr(*out, number);
  } else {
    *out += text;
  }
  if (kind == Kind::kPercent) *out += '%';
}

}  // namespace msprobe
