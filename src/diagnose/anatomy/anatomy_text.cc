// How a value is wrong, in the words of both languages and as JSON.
#include <fmt/format.h>

#include <cmath>

#include "diagnose/anatomy/anatomy.h"
#include "json/writer.h"

namespace msprobe {
namespace {

/// One phrase in each language, with the same arguments.
class Say {
 public:
  explicit Say(Language language) : chinese_(language == Language::kChinese) {}
  template <typename... Args>
  std::string operator()(std::string_view en, std::string_view zh, const Args&... args) const {
    return fmt::format(fmt::runtime(chinese_ ? zh : en), args...);
  }
  std::string_view comma() const { return chinese_ ? "，" : ", "; }

 private:
  bool chinese_;
};

std::string Number(double v) { return fmt::format("{:.6g}", v); }

std::string Meaning(const Say& say, std::string_view meaning) {
  if (meaning == "world_size") return say("the number of ranks", "rank 数");
  if (meaning == "loss_scale") return say("a loss scale", "loss scale");
  if (meaning == "sqrt_of_dimension") return say("the root of a dimension", "某一维大小的平方根");
  return say("the size of a dimension", "某一维的大小");
}

/// "8 (the number of ranks)"
std::string FactorText(const Say& say, const Anatomy& a) {
  std::string out = (a.name.empty() ? Number(a.number) : a.name) + say("", " 倍");
  for (size_t i = 0; i < a.meanings.size(); ++i) {
    out += i == 0 ? say(" (", "（") : say(" or ", "或");
    out += Meaning(say, a.meanings[i]);
  }
  return a.meanings.empty() ? out : out + say(")", "）");
}

/// "bfloat16 or float16"
std::string EitherOf(const Say& say, std::string text) {
  constexpr std::string_view kOr = " or ";
  const size_t at = text.find(kOr);
  if (at != std::string::npos) text.replace(at, kOr.size(), say(" or ", " 或 "));
  return text;
}

std::string List(const std::vector<int64_t>& values, int64_t all) {
  std::string out;
  for (const int64_t v : values) out += (out.empty() ? "" : ", ") + std::to_string(v);
  return all > static_cast<int64_t>(values.size()) ? out + ", ..." : out;
}

/// ", in 2 of 8 entries of axis 1 (3, 5)"; "" for all of it.
std::string Where(const Say& say, const AxisPart& part) {
  if (part.axis < 0) return {};
  return say(", in {} of {} entries of axis {} ({})", "，仅限第 {2} 维 {1} 项中的 {0} 项（{3}）", part.count, part.size,
             part.axis, List(part.entries, part.count));
}

std::string Moves(const Say& say, const Anatomy& a) {
  std::string out;
  for (size_t i = 0; i < a.part.entries.size() && i < a.sources.size(); ++i) {
    out += fmt::format("{}{} <- {}", i ? ", " : "", a.part.entries[i], a.sources[i]);
  }
  if (a.part.count > static_cast<int64_t>(a.part.entries.size())) out += ", ...";
  const std::string entries =
      a.block > 1 ? say("blocks of {}", "每 {} 个元素一块的各块", a.block) : say("entries", "各项");
  if (a.kind == AnatomyKind::kDuplicated) {
    return say("{1} of axis {0} repeat others ({2})", "第 {} 维的{}有重复（{}）", a.part.axis, entries, out);
  }
  return say("{1} of axis {0} are in a different order ({2})", "第 {} 维的{}次序不同（{}）", a.part.axis, entries, out);
}

std::string Clip(const Say& say, const Anatomy& a) {
  if (std::isinf(a.low)) return say("cut off above {}", "大于 {} 的值被截断", Number(a.high));
  if (std::isinf(a.high)) return say("cut off below {}", "小于 {} 的值被截断", Number(a.low));
  return say("cut off outside of {} to {}", "超出 {} 至 {} 的值被截断", Number(a.low), Number(a.high));
}

std::string Axes(const Say& say, const Anatomy& a) {
  std::string axes;
  for (const int axis : a.axes) axes += (axes.empty() ? "" : ", ") + std::to_string(axis);
  if (a.block > 0) {
    return say("axes {} are exchanged, one of them split in {}", "第 {} 维互换，其中一维拆成 {} 份", axes, a.block);
  }
  return a.axes.size() > 2 ? say("the axes stand in the order {}", "各维的次序为 {}", axes)
                           : say("axes {} are exchanged", "第 {} 维互换", axes);
}

std::string Zeroed(const Say& say, const Anatomy& a) {
  if (a.part.axis < 0 && a.differing > 0) return say("{} of its elements are zero", "有 {} 个元素为零", a.differing);
  return say("it is zero", "为零") + Where(say, a.part);
}

std::string Kind(const Say& say, const Anatomy& a) {
  switch (a.kind) {
    case AnatomyKind::kUnexplained: return {};
    case AnatomyKind::kFactor:
      return say("it is {} times the golden value", "为标杆值的 {}", FactorText(say, a)) + Where(say, a.part);
    case AnatomyKind::kSign: return say("its sign is changed", "符号相反") + Where(say, a.part);
    case AnatomyKind::kOffset:
      return say("it is the golden value plus {}", "为标杆值加 {}", Number(a.number)) + Where(say, a.part);
    case AnatomyKind::kAxes: return Axes(say, a);
    case AnatomyKind::kOrder:
      if (a.ambiguous)
        return say("its statistics are equal and its checksum is not: the values may be in a different order",
                   "统计量相同而校验和不同：可能是元素次序不同");
      return Moves(say, a);
    case AnatomyKind::kDuplicated:
      if (a.sources.empty())
        return say("axis {} holds its {} entries more than once", "第 {} 维的 {} 项重复出现", a.part.axis, a.part.size);
      return Moves(say, a);
    case AnatomyKind::kShift:
      return a.wraps ? say("shifted by {} along axis {}, around the end", "沿第 {1} 维循环移动 {0} 位", a.shift,
                           a.part.axis)
                     : say("shifted by {} along axis {}", "沿第 {1} 维移动 {0} 位", a.shift, a.part.axis);
    case AnatomyKind::kRope:
      return say("along axis {}, halves of {} elements stand against neighbouring pairs",
                 "第 {} 维中每 {} 个元素的前后两半与相邻成对的排列互换", a.part.axis, a.block);
    case AnatomyKind::kStale:
      // Another call's may be a value from before, or that of another variable: what is known is that they are equal.
      return a.source.find(".") == std::string::npos
                 ? say("it is stale: it equals that of {}", "为旧值：等于 {} 的值", a.source)
                 : say("it equals that of {}: an older value, or one taken for another",
                       "等于 {} 的值：旧值，或误用了另一个值", a.source);
    case AnatomyKind::kAccumulated:
      if (a.number > 0 && a.number < 1)
        return say("it is the golden value and {:.4g} times that of {} added up, as clipping left it",
                   "为标杆值与 {1} 的值（裁剪后剩 {0:.4g} 倍）之和", a.number, a.source);
      return say("it is the golden value and that of {} added up", "为标杆值与 {} 的值之和", a.source);
    case AnatomyKind::kPartial: return say("a summand is missing: {}", "缺少加数：{}", a.source);
    case AnatomyKind::kPadding:
      return say("it differs only where the tokens are padding ({} elements)", "仅填充位置不同（{} 个元素）",
                 a.differing);
    case AnatomyKind::kGrid:
      return say("its values were rounded to {} on the way", "数值在途中被舍入为 {}",
                 a.ambiguous ? EitherOf(say, a.name) : a.name);
    case AnatomyKind::kZeroed: return Zeroed(say, a);
    case AnatomyKind::kDropped:
      return say("{} of its elements are zero, the others {} times the golden value: a dropout",
                 "有 {} 个元素为零，其余为标杆值的 {} 倍：dropout", a.differing, Number(a.number));
    case AnatomyKind::kTruncated:
      return say("it has only the first {} of {} entries of axis {}", "仅有第 {2} 维 {1} 项中的前 {0} 项", a.part.count,
                 a.part.size, a.part.axis);
    case AnatomyKind::kClipped: return Clip(say, a);
    case AnatomyKind::kNotFinite:
      return say("{} of its elements are NaN or infinite, the others agree", "有 {} 个元素为 NaN 或无穷大，其余一致",
                 a.differing);
  }
  return {};
}

/// Kinds that are not undone: what agrees is all there is.
bool IsUndone(AnatomyKind kind) {
  return kind != AnatomyKind::kPadding && kind != AnatomyKind::kZeroed && kind != AnatomyKind::kClipped &&
         kind != AnatomyKind::kNotFinite && kind != AnatomyKind::kGrid;
}

void WritePart(JsonWriter* json, const AxisPart& part) {
  if (part.axis < 0) return;
  json->Member("axis", part.axis);
  json->Member("size", part.size);
  if (part.count > 0) json->Member("count", part.count);
  if (!part.entries.empty()) json->Member("entries", part.entries);
}

void NumberOrNull(JsonWriter* json, std::string_view key, double v) {
  json->Key(key);
  std::isfinite(v) ? json->Number(v) : json->Null();
}

void WriteParameter(JsonWriter* json, const Anatomy& a) {
  using Kind = AnatomyKind;
  if (a.kind == Kind::kFactor || a.kind == Kind::kDropped) json->Member("factor", a.number);
  if (a.kind == Kind::kOffset) json->Member("offset", a.number);
  if (!a.name.empty()) json->Member(a.kind == Kind::kGrid ? "dtype" : "name", a.name);
  if (!a.meanings.empty()) json->Member("meanings", a.meanings);
  if (a.kind == Kind::kClipped) NumberOrNull(json, "low", a.low), NumberOrNull(json, "high", a.high);
  if (!a.axes.empty()) json->Member("axes", a.axes);
  WritePart(json, a.part);
  if (!a.sources.empty()) json->Member("sources", a.sources);
  if (a.kind == Kind::kShift) json->Member("shift", a.shift), json->Member("wraps", a.wraps);
  if (a.block > 0) json->Member(a.kind == Kind::kAxes ? "split" : "block", a.block);
  if (!a.source.empty()) json->Member("source", a.source);
  if (a.differing > 0) json->Member("elements", a.differing);
}

}  // namespace

std::string_view AnatomyKindName(AnatomyKind kind) {
  switch (kind) {
    case AnatomyKind::kUnexplained: return "unexplained";
    case AnatomyKind::kFactor: return "factor";
    case AnatomyKind::kSign: return "sign";
    case AnatomyKind::kOffset: return "offset";
    case AnatomyKind::kAxes: return "axes";
    case AnatomyKind::kOrder: return "order";
    case AnatomyKind::kShift: return "shift";
    case AnatomyKind::kRope: return "rope";
    case AnatomyKind::kStale: return "stale";
    case AnatomyKind::kAccumulated: return "accumulated";
    case AnatomyKind::kPartial: return "partial";
    case AnatomyKind::kPadding: return "padding";
    case AnatomyKind::kGrid: return "grid";
    case AnatomyKind::kZeroed: return "zeroed";
    case AnatomyKind::kDropped: return "dropped";
    case AnatomyKind::kDuplicated: return "duplicated";
    case AnatomyKind::kTruncated: return "truncated";
    case AnatomyKind::kClipped: return "clipped";
    case AnatomyKind::kNotFinite: return "not_finite";
  }
  return "";
}

std::string AnatomyText(const Anatomy& a, Language language) {
  if (!a.found()) return {};
  const Say say(language);
  std::string out = a.item.empty() ? "" : a.item + say(": ", "：");
  out += Kind(say, a);
  const bool told = a.ambiguous && a.kind == AnatomyKind::kOrder;  // what is known of it
  if (a.statistics) return out + (told ? "" : say(", by its statistics", "，由统计量得出"));
  if (!IsUndone(a.kind)) return out;
  if (a.residual == 0) return out + say("; undone, it is equal", "；还原后相等");
  return out + say("; undone, {:.2g} rounding units are left", "；还原后剩余 {:.2g} 个舍入单位", a.residual);
}

void WriteAnatomy(JsonWriter* json, const Anatomy& a) {
  json->BeginObject();
  json->Member("kind", AnatomyKindName(a.kind));
  if (a.found()) {
    json->Member("item", a.item);
    json->ObjectMember("parameter", [&] { WriteParameter(json, a); });
    json->Key("residual"), json->Rounded(a.residual, 6);
    json->Member("compared", a.compared);
    json->Member("elements", a.elements);
    json->Member("from", a.statistics ? "statistics" : "tensors");
    json->Member("ambiguous", a.ambiguous);
    json->ObjectMember("text", [&] {
      json->Member("en", AnatomyText(a, Language::kEnglish));
      json->Member("zh", AnatomyText(a, Language::kChinese));
    });
  }
  json->EndObject();
}

}  // namespace msprobe
