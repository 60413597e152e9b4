// Changes of a call that must not change its results.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace msprobe {

/// `name` is how the program and the tables call it. `usual`: whether it is tried when nothing is said of relations.
struct Relation {
  std::string_view name;
  bool usual;
};

inline constexpr std::array<Relation, 13> kRelations{{{"again", true},
                                                      {"row alone", true},
                                                      {"half batch", true},
                                                      {"chunked", true},
                                                      {"permuted rows", true},
                                                      {"padded", true},
                                                      {"strided", true},
                                                      {"other threads", true},
                                                      {"deterministic", true},
                                                      {"compiled", false},
                                                      {"other dtype", true},
                                                      {"float64", true},
                                                      {"one ulp", true}}};

/// By how many ulp a result moves when all inputs move by one.
inline constexpr size_t kOneUlp = kRelations.size() - 1;
/// Of the last three a difference is expected: it is the rounding of a dtype.
inline bool IsRounding(size_t relation) { return relation >= kRelations.size() - 3; }

/// The number of a name; underscores and hyphens stand for spaces.
std::optional<size_t> FindRelation(std::string_view name);

}  // namespace msprobe
