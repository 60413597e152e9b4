#include "checks/sequence_ratio.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace msprobe {
namespace {

constexpr size_t kLongest = 4096;     // characters of a text that are looked at
constexpr size_t kPopularFrom = 200;  // in texts as long as this, characters that are frequent start no match

std::vector<uint32_t> Characters(std::string_view text) {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < text.size() && out.size() < kLongest;) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t size = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    uint32_t value = 0;
    for (size_t k = 0; k < size && i + k < text.size(); ++k)
      value = value << 8 | static_cast<unsigned char>(text[i + k]);
    out.push_back(value);
    i += size;
  }
  return out;
}

struct Block {
  size_t a, b, size;
};

class Matcher {
 public:
  Matcher(std::vector<uint32_t> a, std::vector<uint32_t> b) : a_(std::move(a)), b_(std::move(b)) {
    for (size_t i = 0; i < b_.size(); ++i) places_[b_[i]].push_back(i);
    if (b_.size() < kPopularFrom) return;
    const size_t most = b_.size() / 100 + 1;
    std::erase_if(places_, [&](const auto& entry) { return entry.second.size() > most; });
  }

  double Ratio() const {
    if (a_.empty() && b_.empty()) return 1;
    size_t matches = 0;
    struct Range {
      size_t a_begin, a_end, b_begin, b_end;
    };
    std::vector<Range> todo = {{0, a_.size(), 0, b_.size()}};
    while (!todo.empty()) {
      const Range r = todo.back();
      todo.pop_back();
      const Block block = Longest(r.a_begin, r.a_end, r.b_begin, r.b_end);
      if (block.size == 0) continue;
      matches += block.size;
      if (r.a_begin < block.a && r.b_begin < block.b) todo.push_back({r.a_begin, block.a, r.b_begin, block.b});
      if (block.a + block.size < r.a_end && block.b + block.size < r.b_end) {
        todo.push_back({block.a + block.size, r.a_end, block.b + block.size, r.b_end});
      }
    }
    return 2.0 * static_cast<double>(matches) / static_cast<double>(a_.size() + b_.size());
  }

 private:
  /// The longest run that both ranges have, of several the first in a, then in b.
  Block Longest(size_t a_begin, size_t a_end, size_t b_begin, size_t b_end) const {
    Block best{a_begin, b_begin, 0};
    std::unordered_map<size_t, size_t> lengths, next;  // of the run that ends at this place of b
    for (size_t i = a_begin; i < a_end; ++i) {
      next.clear();
      if (const auto found = places_.find(a_[i]); found != places_.end()) {
        for (const size_t j : found->second) {
          if (j < b_begin) continue;
          if (j >= b_end) break;
          const auto before = j > 0 ? lengths.find(j - 1) : lengths.end();
          const size_t length = (before == lengths.end() ? 0 : before->second) + 1;
          next[j] = length;
          if (length > best.size) best = {i + 1 - length, j + 1 - length, length};
        }
      }
      lengths.swap(next);
    }
    while (best.a > a_begin && best.b > b_begin && a_[best.a - 1] == b_[best.b - 1]) {
      best = {best.a - 1, best.b - 1, best.size + 1};
    }
    while (best.a + best.size < a_end && best.b + best.size < b_end &&
           a_[best.a + best.size] == b_[best.b + best.size]) {
      ++best.size;
    }
    return best;
  }

  std::vector<uint32_t> a_, b_;
  std::unordered_map<uint32_t, std::vector<size_t>> places_;  // in b
};

}  // namespace

double SequenceRatio(std::string_view a, std::string_view b) { return Matcher(Characters(a), Characters(b)).Ratio(); }

}  // namespace msprobe
