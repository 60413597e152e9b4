#include "view/search/search_terms.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/text.h"
#include "tensor/kernels/dtype.h"
#include "view/search/node_filter.h"

namespace msprobe::view {
namespace {

constexpr size_t kMostBytes = 4096;

char LowerLetter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

std::string InLowerCase(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), LowerLetter);
  return out;
}

bool IsSpace(char c) { return static_cast<unsigned char>(c) <= ' '; }
/// A byte behind the first one of a character.
bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// A word that a field takes, and what it means there; another word for the same is not told.
struct FieldValue {
  std::string_view word;
  unsigned meaning = 0;
  bool again = false;
};
using FieldValues = std::vector<FieldValue>;

unsigned Bits(NodeFilter filter) { return static_cast<unsigned>(filter); }

const FieldValues& VerdictValues() {
  static const FieldValues kValues{{"bug", Bits(NodeFilter::kBug)},
                                   {"suspicious", Bits(NodeFilter::kSuspicious)},
                                   {"inherited", Bits(NodeFilter::kInherited)},
                                   {"rounding", Bits(NodeFilter::kRoundOff)},
                                   {"round-off", Bits(NodeFilter::kRoundOff), true},
                                   {"rewritten", Bits(NodeFilter::kRewritten)},
                                   {"bit-equal", Bits(NodeFilter::kBitEqual)},
                                   {"missing", Bits(NodeFilter::kUnmatched)},
                                   {"unmatched", Bits(NodeFilter::kUnmatched), true},
                                   {"unjudged", Bits(NodeFilter::kUnjudged)}};
  return kValues;
}
const FieldValues& ResultValues() {
  static const FieldValues kValues{{"error", Bits(NodeFilter::kError)},
                                   {"warning", Bits(NodeFilter::kWarning)},
                                   {"pass", Bits(NodeFilter::kPass)},
                                   {"unmatched", Bits(NodeFilter::kUnmatched)},
                                   {"none", Bits(NodeFilter::kNone)}};
  return kValues;
}
const FieldValues& OverflowValues() {
  static const FieldValues kValues{{"any", Bits(NodeFilter::kOverflow)},
                                   {"critical", Bits(NodeFilter::kCritical)},
                                   {"high", Bits(NodeFilter::kHigh)},
                                   {"medium", Bits(NodeFilter::kMedium)}};
  return kValues;
}
const FieldValues& TypeValues() {
  static const FieldValues kValues{
      {"module", 1u << 0}, {"op", 1u << 1}, {"api", 1u << 1, true}, {"collection", 1u << kCollection}};
  return kValues;
}
const FieldValues& SideValues() {
  static const FieldValues kValues{{"target", 1}, {"golden", 2}, {"npu", 1, true}, {"bench", 2, true}};
  return kValues;
}

uint32_t Bit(DType type) { return uint32_t{1} << static_cast<unsigned>(type); }

/// "float8" is any of its kinds.
const FieldValues& DTypeValues() {
  static const FieldValues kValues = [] {
    FieldValues out;
    uint32_t float8 = 0;
    for (unsigned i = 0; i < static_cast<unsigned>(DType::kUnknown); ++i) {
      const auto type = static_cast<DType>(i);
      const bool is_float8 = DTypeName(type).starts_with("float8");
      if (is_float8) float8 |= Bit(type);
      out.push_back({DTypeName(type), Bit(type), is_float8 || type == DType::kComplex32});
    }
    const auto before = std::find_if(out.begin(), out.end(), [](const FieldValue& v) { return v.word == "int8"; });
    out.insert(before, {"float8", float8});
    for (const auto& [word, type] : {std::pair<std::string_view, DType>{"fp32", DType::kFloat32},
                                     {"fp64", DType::kFloat64},
                                     {"fp16", DType::kFloat16},
                                     {"bf16", DType::kBFloat16}}) {
      out.push_back({word, Bit(type), true});
    }
    out.push_back({"fp8", float8, true});
    return out;
  }();
  return kValues;
}

struct Field {
  std::string_view name;
  const FieldValues& (*values)();
};
constexpr std::array<Field, 6> kFields{{{"verdict", VerdictValues},
                                        {"result", ResultValues},
                                        {"overflow", OverflowValues},
                                        {"type", TypeValues},
                                        {"dtype", DTypeValues},
                                        {"side", SideValues}}};

std::string Known(const FieldValues& values) {
  std::string out;
  for (const FieldValue& value : values) {
    if (!value.again) out.append(out.empty() ? "" : ", ").append(value.word);
  }
  return out;
}

StatusOr<unsigned> Meaning(const Field& field, std::string_view text) {
  const auto& values = field.values();
  unsigned meaning = 0;
  for (const std::string_view part : Split(text, ',')) {
    std::string word = InLowerCase(part);
    if (field.name == "dtype") {  // as tables have it
      for (const std::string_view framework : {"torch.", "mindspore."}) {
        if (word.starts_with(framework)) word.erase(0, framework.size());
      }
    }
    const auto known = std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.word == word; });
    if (known == values.end()) {
      if (part.empty()) return UsageError(fmt::format("{}: needs a value: {}", field.name, Known(values)));
      return UsageError(fmt::format("{} is not a value of {}: {}", part, field.name, Known(values)));
    }
    meaning |= known->meaning;
  }
  return meaning;
}

// A number without a sign and not too long to be one, with or without "%".
std::optional<double> SizeOf(std::string_view text) {
  constexpr size_t kMostDigits = 32, kMostOfExponent = 2;
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const size_t e = std::min(text.find_first_of("eE"), text.size());
  std::string_view exponent = text.substr(e);
  if (!exponent.empty()) {
    exponent.remove_prefix(exponent.size() > 1 && (exponent[1] == '+' || exponent[1] == '-') ? 2 : 1);
    if (!IsDigits(exponent) || exponent.size() > kMostOfExponent) return std::nullopt;
  }
  const std::string_view mantissa = text.substr(0, e);
  if (mantissa.empty() || mantissa.size() > kMostDigits || !digit(mantissa.front()) || !digit(mantissa.back()) ||
      std::count(mantissa.begin(), mantissa.end(), '.') > 1 ||
      !std::all_of(mantissa.begin(), mantissa.end(), [&](char c) { return digit(c) || c == '.'; })) {
    return std::nullopt;
  }
  // from_chars does not take the plus of an exponent in all libraries.
  std::string plain(text);
  std::erase(plain, '+');
  double value = 0;
  const auto read = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (read.ec != std::errc() || read.ptr != plain.data() + plain.size()) return std::nullopt;
  return percent ? value / 100 : value;
}

/// What stands behind "error"; nothing where the word is not about errors.
std::optional<std::string_view> BehindError(std::string_view word) {
  constexpr std::string_view kName = "error";
  if (word.size() <= kName.size() || InLowerCase(word.substr(0, kName.size())) != kName) return std::nullopt;
  const std::string_view behind = word.substr(kName.size());
  const bool about =
      behind[0] == '<' || behind[0] == '>' || behind[0] == '=' || (behind[0] == ':' && behind.substr(1, 1) != ":");
  return about ? std::optional(behind) : std::nullopt;
}

StatusOr<ErrorBound> BoundOf(std::string_view behind) {
  using Relation = ErrorBound::Relation;
  const bool above = behind[0] == '>', equal = behind.substr(1, 1) == "=";
  const auto limit = SizeOf(behind.substr(equal ? 2 : 1));
  if ((!above && behind[0] != '<') || !limit)
    return UsageError("error: needs a comparison with a number: error>0.1, error>=10% or error<1e-3");
  if (above) return ErrorBound{equal ? Relation::kAtLeast : Relation::kAbove, *limit};
  return ErrorBound{equal ? Relation::kAtMost : Relation::kBelow, *limit};
}

/// "type" of "type:op"; nothing of a word that is about names, as "torch::add" is.
std::optional<std::string_view> FieldOf(std::string_view word) {
  const size_t colon = word.find(':');
  if (colon == std::string_view::npos || colon == 0 || word.substr(colon + 1, 1) == ":") return std::nullopt;
  const std::string_view name = word.substr(0, colon);
  const auto letter = [](char c) { return LowerLetter(c) >= 'a' && LowerLetter(c) <= 'z'; };
  return std::all_of(name.begin(), name.end(), letter) ? std::optional(name) : std::nullopt;
}

NamePattern PatternOf(std::string_view word) {
  NamePattern pattern;
  for (const std::string_view part : Split(word, '*')) {
    if (part.empty()) continue;
    std::string piece = InLowerCase(part);
    std::replace(piece.begin(), piece.end(), '?', kAnyCharacter);
    pattern.push_back(std::move(piece));
  }
  if (pattern.empty()) pattern.emplace_back();  // "*": any name
  return pattern;
}

StatusOr<std::vector<NamePattern>> OpsOf(std::string_view text) {
  std::vector<NamePattern> out;
  for (const std::string_view part : Split(text, ',')) {
    if (part.empty()) return UsageError("op: needs the name of an op or a class: op:linear or op:*norm*");
    NamePattern& pattern = out.emplace_back();
    for (const std::string_view piece : Split(part, '*')) {
      pattern.push_back(InLowerCase(piece));
      std::replace(pattern.back().begin(), pattern.back().end(), '?', kAnyCharacter);
    }
  }
  return out;
}

/// Where the piece ends that stands at `at`; npos where it does not.
size_t PieceEnd(std::string_view name, std::string_view piece, size_t at) {
  for (const char c : piece) {
    if (at >= name.size()) return std::string_view::npos;
    if (c != kAnyCharacter) {
      if (LowerLetter(name[at++]) != c) return std::string_view::npos;
      continue;
    }
    if (Continues(name[at])) return std::string_view::npos;
    for (++at; at < name.size() && Continues(name[at]);) ++at;
  }
  return at;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  StatusOr<SearchTerms> Read() {
    if (text_.size() > kMostBytes) return TooMuch();
    for (SkipSpaces(); at_ < text_.size(); SkipSpaces()) {
      SearchTerm term;
      term.excluded = text_[at_] == '-' && at_ + 1 < text_.size() && !IsSpace(text_[at_ + 1]);
      if (term.excluded) ++at_;
      MSP_ASSIGN_OR_RETURN(const bool has, text_[at_] == '"' ? ReadQuoted(&term) : ReadWord(&term));
      if (!has) continue;
      if (out_.terms.size() == kMostTerms) return TooMuch();
      out_.terms.push_back(std::move(term));
    }
    return std::move(out_);
  }

 private:
  static Status TooMuch() {
    return UsageError(fmt::format("the search has more than {} words: use fewer", kMostTerms));
  }
  void SkipSpaces() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
  }
  /// Whether there is a term in it.
  StatusOr<bool> ReadQuoted(SearchTerm* term) {
    const size_t end = text_.find('"', at_ + 1);
    if (end == std::string_view::npos) return UsageError("a quotation mark is not closed: add another one");
    const std::string_view quoted = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    std::string piece = InLowerCase(quoted);
    std::erase(piece, kAnyCharacter);
    if (piece.empty()) return false;
    term->pattern.push_back(std::move(piece));
    return true;
  }
  StatusOr<bool> ReadWord(SearchTerm* term) {
    const size_t start = at_;
    while (at_ < text_.size() && !IsSpace(text_[at_])) ++at_;
    const std::string_view word = text_.substr(start, at_ - start);
    if (const auto behind = BehindError(word)) {
      MSP_ASSIGN_OR_RETURN(term->error, BoundOf(*behind));
      return true;
    }
    const auto named = FieldOf(word);
    if (!named) {
      term->pattern = PatternOf(word);
      return true;
    }
    const std::string name = InLowerCase(*named);
    if (name == "op") {
      MSP_ASSIGN_OR_RETURN(term->ops, OpsOf(word.substr(name.size() + 1)));
      return true;
    }
    if (name == "rank") return SetRank(word.substr(name.size() + 1), term->excluded);
    const auto* field = std::find_if(kFields.begin(), kFields.end(), [&](const Field& f) { return f.name == name; });
    if (field == kFields.end()) {
      return UsageError(fmt::format(
          "{}: is not a field: use verdict, result, overflow, type, op, dtype, error, side or rank, or put the word in "
          "quotation marks",
          *named));
    }
    MSP_ASSIGN_OR_RETURN(const unsigned meaning, Meaning(*field, word.substr(named->size() + 1)));
    if (field->name == "side") return SetSide(meaning, term->excluded);
    (field->name == "type" ? term->types : field->name == "dtype" ? term->dtypes : term->levels) = meaning;
    return true;
  }
  StatusOr<bool> SetRank(std::string_view text, bool excluded) {
    constexpr size_t kMostDigits = 9;
    if (excluded || text.size() > kMostDigits || !IsDigits(text)) {
      return UsageError("rank: needs the number of one rank: rank:2");
    }
    int64_t rank = 0;
    std::from_chars(text.data(), text.data() + text.size(), rank);
    if (out_.rank.value_or(rank) != rank) return UsageError("a search is of one rank: use one rank:");
    out_.rank = rank;
    return false;
  }
  StatusOr<bool> SetSide(unsigned sides, bool excluded) {
    if (excluded) sides = 3 & ~sides;
    const SearchSide side = sides == 1 ? SearchSide::kTarget : SearchSide::kGolden;
    if ((sides != 1 && sides != 2) || (out_.side != SearchSide::kAsShown && out_.side != side))
      return UsageError("a search is of one side: use side:target or side:golden");
    out_.side = side;
    return false;
  }

  std::string_view text_;
  size_t at_ = 0;
  SearchTerms out_;
};

}  // namespace

std::vector<std::string> SearchTerms::Marked() const {
  std::vector<std::string> out;
  for (const SearchTerm& term : terms) {
    if (term.excluded) continue;
    for (const std::string& piece : term.pattern) {
      for (const std::string_view part : Split(piece, kAnyCharacter)) {
        if (!part.empty() && std::find(out.begin(), out.end(), part) == out.end()) out.emplace_back(part);
      }
    }
  }
  return out;
}

bool SearchTerms::AsksErrors() const {
  return std::any_of(terms.begin(), terms.end(),
                     [](const SearchTerm& term) { return term.error.relation != ErrorBound::Relation::kNone; });
}

bool SearchTerms::AsksDTypes() const {
  return std::any_of(terms.begin(), terms.end(), [](const SearchTerm& term) { return term.dtypes != 0; });
}

bool ErrorBound::Holds(double error) const {
  switch (relation) {
    case Relation::kAbove: return error > limit;
    case Relation::kAtLeast: return error >= limit;
    case Relation::kBelow: return error < limit;
    case Relation::kAtMost: return error <= limit;
    case Relation::kNone: break;
  }
  return false;
}

StatusOr<SearchTerms> ParseSearchTerms(std::string_view text) { return Reader(text).Read(); }

bool FitsPattern(std::string_view name, const NamePattern& pattern) {
  size_t from = 0;
  for (const std::string& piece : pattern) {
    size_t end = std::string_view::npos;
    for (; from <= name.size() && end == std::string_view::npos; ++from) end = PieceEnd(name, piece, from);
    if (end == std::string_view::npos) return false;
    from = end;
  }
  return true;
}

bool IsPattern(std::string_view name, const NamePattern& pattern) {
  if (pattern.empty()) return false;
  size_t from = PieceEnd(name, pattern.front(), 0);
  if (from == std::string_view::npos) return false;
  if (pattern.size() == 1) return from == name.size();
  for (size_t i = 1; i + 1 < pattern.size(); ++i) {
    size_t end = std::string_view::npos;
    for (; from <= name.size() && end == std::string_view::npos; ++from) end = PieceEnd(name, pattern[i], from);
    if (end == std::string_view::npos) return false;
    from = end;
  }
  for (; from <= name.size(); ++from) {
    if (PieceEnd(name, pattern.back(), from) == name.size()) return true;
  }
  return false;
}

}  // namespace msprobe::view
