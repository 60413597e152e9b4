// Which nodes of a side a search keeps.
#pragma once

#include <cstdint>
#include <vector>

#include "view/file/tree.h"
#include "view/search/node_filter.h"
#include "view/search/search_terms.h"

namespace msprobe::view {

/// Names are looked through once, before all nodes. What it is made of must outlive it.
class Sieve {
 public:
  /// `compared`: a node without a partner is unmatched.
  /// `errors`, `dtypes`: one entry a node, NaN or 0 where there is none; null: there are none.
  Sieve(const Tree& tree, bool compared, const SearchTerms& terms, NodeFilter filter, bool leaves_only,
        const std::vector<double>* errors = nullptr, const std::vector<uint32_t>* dtypes = nullptr);
  bool Keeps(uint32_t node) const;

 private:
  void KeepNames(const std::vector<uint8_t>& fits, bool excluded);
  bool Has(uint32_t node, const SearchTerm& term) const;

  const Tree& tree_;
  const std::vector<double>* const errors_;
  const std::vector<uint32_t>* const dtypes_;
  const bool compared_, leaves_only_;
  const NodeFilter filter_;
  std::vector<const SearchTerm*> others_;  // that are not about names
  std::vector<uint8_t> named_;             // by number of the name; empty: any name will do
};

}  // namespace msprobe::view
