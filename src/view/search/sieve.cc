#include "view/search/sieve.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/text.h"
#include "view/search/op_name.h"

namespace msprobe::view {
namespace {

/// The longest text that every name of the pattern holds.
std::string_view LongestText(const NamePattern& pattern) {
  std::string_view longest;
  for (const std::string& piece : pattern) {
    for (const std::string_view part : Split(piece, kAnyCharacter)) {
      if (part.size() > longest.size()) longest = part;
    }
  }
  return longest;
}

// One entry a name: whether it fits. A text is looked for in all names at once, which is many times as fast as a look
// at each; only what holds it is tried.
std::vector<uint8_t> NamesThatFit(const NodeNames& names, const NamePattern& pattern) {
  const std::string_view text = LongestText(pattern);
  std::vector<uint8_t> fits = names.Containing(text);
  if (pattern.size() == 1 && pattern[0].size() == text.size()) return fits;
  for (uint32_t i = 0; i < names.size(); ++i) {
    if (fits[i]) fits[i] = FitsPattern(names[i], pattern);
  }
  return fits;
}

// The same for the names of their ops.
std::vector<uint8_t> OpsThatFit(const NodeNames& names, const std::vector<NamePattern>& ops) {
  std::vector<uint8_t> fits(names.size(), 0);
  for (const NamePattern& op : ops) {
    const std::vector<uint8_t> holds = names.Containing(LongestText(op));
    for (uint32_t i = 0; i < names.size(); ++i) {
      if (fits[i] || !holds[i]) continue;
      const std::string_view name = OpNameOf(names[i]);
      fits[i] = !name.empty() && IsPattern(name, op);
    }
  }
  return fits;
}

}  // namespace

Sieve::Sieve(const Tree& tree, bool compared, const SearchTerms& terms, NodeFilter filter, bool leaves_only,
             const std::vector<double>* errors, const std::vector<uint32_t>* dtypes)
    : tree_(tree), errors_(errors), dtypes_(dtypes), compared_(compared), leaves_only_(leaves_only), filter_(filter) {
  for (const SearchTerm& term : terms.terms) {
    if (term.pattern.empty() && term.ops.empty()) {
      others_.push_back(&term);
    } else if (tree.names()) {
      KeepNames(term.ops.empty() ? NamesThatFit(*tree.names(), term.pattern) : OpsThatFit(*tree.names(), term.ops),
                term.excluded);
    }
  }
}

void Sieve::KeepNames(const std::vector<uint8_t>& fits, bool excluded) {
  if (named_.empty()) named_.assign(fits.size(), 1);
  for (size_t i = 0; i < fits.size(); ++i) named_[i] &= static_cast<uint8_t>((fits[i] != 0) != excluded);
}

bool Sieve::Has(uint32_t node, const SearchTerm& term) const {
  if (term.types != 0) return (term.types >> tree_.Type(node) & 1) != 0;
  if (term.dtypes != 0) return dtypes_ && ((*dtypes_)[node] & term.dtypes) != 0;
  if (term.error.relation != ErrorBound::Relation::kNone) return errors_ && term.error.Holds((*errors_)[node]);
  return (term.levels & LevelBits(compared_, tree_, node)) != 0;
}

bool Sieve::Keeps(uint32_t node) const {
  if (!named_.empty() && !named_[tree_.NameNumber(node)]) return false;
  if (leaves_only_ && !tree_.IsLeaf(node)) return false;
  if (!FilterKeeps(filter_, compared_, tree_, node)) return false;
  return std::all_of(others_.begin(), others_.end(),
                     [&](const SearchTerm* term) { return Has(node, *term) != term->excluded; });
}

}  // namespace msprobe::view
