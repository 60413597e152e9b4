#include "match/modules/parameter_shapes.h"

#include <algorithm>

#include "base/text.h"
#include "match/modules/hash_mix.h"

namespace msprobe {

size_t CountCommon(const Shapes& a, const Shapes& b) {
  size_t out = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j])
      ++out, ++i, ++j;
    else
      a[i] < b[j] ? ++i : ++j;
  }
  return out;
}

Shapes ShapesOf(std::string_view all) {
  Shapes out;
  for (size_t at = all.find('['); at != std::string_view::npos; at = all.find('[', at + 1)) {
    std::vector<std::string_view> sizes = Split(all.substr(at + 1, all.find(']', at) - at - 1), ' ');
    for (std::string_view& size : sizes) {
      if (EndsWith(size, ",")) size.remove_suffix(1);
    }
    if (sizes.size() == 2 && std::make_pair(sizes[0].size(), sizes[0]) > std::make_pair(sizes[1].size(), sizes[1])) {
      std::swap(sizes[0], sizes[1]);
    }
    uint64_t hash = sizes.size();
    for (const std::string_view size : sizes) hash = MixHash(hash, HashOf(size));
    out.push_back(hash);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::pair<int64_t, std::string_view> RowsOf(std::string_view all) {
  constexpr std::string_view kWeight = "weight [";
  if (!StartsWith(all, kWeight)) return {};
  int64_t rows = 0;
  size_t at = kWeight.size();
  for (; at < all.size() && all[at] >= '0' && all[at] <= '9'; ++at) {
    if (__builtin_mul_overflow(rows, int64_t{10}, &rows) || __builtin_add_overflow(rows, all[at] - '0', &rows))
      return {};
  }
  return {rows, all.substr(at, all.find(']') - at)};
}

int64_t ElementsOf(std::string_view all) {
  int64_t out = 0;
  for (size_t at = all.find('['); at != std::string_view::npos; at = all.find('[', at + 1)) {
    int64_t count = 1, n = 0;
    for (size_t k = at + 1; k < all.size(); ++k) {
      const char c = all[k];
      if (c >= '0' && c <= '9') {
        n = std::min<int64_t>(n * 10 + (c - '0'), int64_t{1} << 40);
        continue;
      }
      if (c != ' ' && __builtin_mul_overflow(count, n, &count)) return -1;
      if (c != ' ') n = 0;
      if (c == ']') break;
    }
    if (__builtin_add_overflow(out, count, &out)) return -1;
  }
  return out;
}

}  // namespace msprobe
