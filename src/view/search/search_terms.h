// What somebody types to find nodes, as terms: words with wildcards, fields, what is left out. docs/page_api.md has the
// syntax; web/src/api/search_terms.ts reads the same for pages without a server, held to search_cases.json as this is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace msprobe::view {

/// Pieces that stand in a name one behind the other, with anything between them; in lower case. kAnyCharacter in a
/// piece is one character of any kind.
using NamePattern = std::vector<std::string>;
inline constexpr char kAnyCharacter = '\0';

/// What the largest relative error of a node is held against.
struct ErrorBound {
  enum class Relation : uint8_t { kNone, kAbove, kAtLeast, kBelow, kAtMost };
  Relation relation = Relation::kNone;
  double limit = 0;  ///< 0.1 is 10 %
  /// NaN, no error, has none of these.
  bool Holds(double error) const;
};

/// A node has a term when its name fits the pattern, or its op is called so, or it has one of the levels (NodeFilter),
/// or one of the types, or a tensor of one of the dtypes, or its error is within the bound.
struct SearchTerm {
  bool excluded = false;  ///< what has it is left out
  NamePattern pattern;    ///< empty: not about the name
  unsigned levels = 0;    ///< bits of NodeFilter
  unsigned types = 0;     ///< a bit for each type of node
  uint32_t dtypes = 0;    ///< a bit for each DType
  ErrorBound error;
  /// Names of ops (op_name.h), of which one fits as a whole: the pieces stand as in a NamePattern, the first at the
  /// start, the last at the end.
  std::vector<NamePattern> ops;
};

enum class SearchSide : uint8_t { kAsShown, kTarget, kGolden };

struct SearchTerms {
  std::vector<SearchTerm> terms;  ///< a node has all of them
  SearchSide side = SearchSide::kAsShown;
  std::optional<int64_t> rank;  ///< of which the graph is searched; none: the one that is shown
  /// What to mark in the names that were found, in lower case.
  std::vector<std::string> Marked() const;
  /// A term is about errors.
  bool AsksErrors() const;
  /// A term is about dtypes.
  bool AsksDTypes() const;
};

inline constexpr size_t kMostTerms = 32;

/// kUsage for what is no search; one line that the page shows.
StatusOr<SearchTerms> ParseSearchTerms(std::string_view text);

/// Letters A-Z in either case.
bool FitsPattern(std::string_view name, const NamePattern& pattern);
/// The same for the whole of the name.
bool IsPattern(std::string_view name, const NamePattern& pattern);

}  // namespace msprobe::view
