#include "graph/db/text_order.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

namespace msprobe {
namespace {

constexpr size_t kWord = sizeof(uint64_t);
constexpr size_t kFew = 8;  // are compared whole

struct Place {
  uint64_t word = 0;  // of the text, its first byte on top
  uint32_t text = 0;
};

uint64_t WordAt(std::string_view text, size_t at) {
  uint64_t word = 0;
  if (text.size() > at) std::memcpy(&word, text.data() + at, std::min(kWord, text.size() - at));
  return std::endian::native == std::endian::little ? __builtin_bswap64(word) : word;
}

class TextSorter {
 public:
  explicit TextSorter(const std::vector<std::string_view>& texts) : texts_(texts) {}

  /// They are equal up to `at`. Word by word: a text is looked at again only where others are equal so far.
  void Sort(std::span<Place> places, size_t at) {
    for (;; at += kWord) {
      if (places.size() <= kFew) return Compare(places);
      bool ends = false, differ = false;
      for (Place& p : places) {
        p.word = WordAt(texts_[p.text], at);
        ends = ends || texts_[p.text].size() <= at + kWord;
        differ = differ || p.word != places[0].word;
      }
      if (differ) break;
      if (ends) return Compare(places);  // what is behind an end counts as zeros
    }
    std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.word < b.word; });
    for (size_t begin = 0, end = 0; begin < places.size(); begin = end) {
      while (end < places.size() && places[end].word == places[begin].word) ++end;
      if (end - begin > 1) Sort(places.subspan(begin, end - begin), at + kWord);
    }
  }

 private:
  void Compare(std::span<Place> places) {
    std::sort(places.begin(), places.end(), [this](const Place& a, const Place& b) {
      const int order = texts_[a.text].compare(texts_[b.text]);
      return order != 0 ? order < 0 : a.text < b.text;
    });
  }
  const std::vector<std::string_view>& texts_;
};

}  // namespace

std::vector<uint32_t> OrderOfTexts(const std::vector<std::string_view>& texts) {
  std::vector<Place> places(texts.size());
  for (uint32_t i = 0; i < texts.size(); ++i) places[i].text = i;
  TextSorter(texts).Sort(places, 0);
  std::vector<uint32_t> order(texts.size());
  std::transform(places.begin(), places.end(), order.begin(), [](const Place& p) { return p.text; });
  return order;
}

}  // namespace msprobe
