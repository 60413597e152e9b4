// Names of a file by where they stand in it, which stays mapped: eight bytes a name, whatever its length.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/big_array.h"
#include "base/slot_table.h"

namespace msprobe {

class NameList {
 public:
  NameList() = default;
  /// `file` is the text that names may stand in; it outlives the list.
  explicit NameList(std::string_view file) : file_(file) {}

  size_t size() const { return places_.size(); }
  std::string_view operator[](size_t i) const {
    const uint64_t place = places_[i];
    const uint64_t begin = place & kBeginBits, size = place >> kSizeShift;
    if (size == kLong) [[unlikely]]
      return LongName(place);
    return {((place & kOwn) != 0 ? own_.data() : file_.data()) + begin, size};
  }
  /// A name that is in the file as it is meant, between its quotes, is not copied; others are. The views that the list
  /// has given of copied names do not last.
  void Add(std::string_view name);
  void Clear();
  /// Without the names that go.
  void Remove(const std::vector<bool>& gone);

 private:
  static constexpr unsigned kSizeShift = 48;
  static constexpr uint64_t kLong = 0xFFFF, kOwn = uint64_t{1} << 47, kBeginBits = kOwn - 1;
  std::string_view LongName(uint64_t place) const;

  std::string_view file_;
  BigArray<uint64_t>
      places_;          // from the top: size (kLong: it must be looked for), whether it is in own_, where it begins
  BigArray<char> own_;  // long names with their sizes in front
};

/// Names that are told apart. They are added as they come; Finish() drops what is there twice and makes them findable:
/// by a sorted list of hashes, which is written in order and so may lie in a file, eight bytes a name.
class NamesByHash {
 public:
  static constexpr size_t kNone = SIZE_MAX;
  static constexpr uint32_t kMost = UINT32_MAX - 1;  // names

  NamesByHash() = default;
  explicit NamesByHash(std::string_view file) : names_(file) {}
  size_t size() const { return names_.size(); }
  std::string_view operator[](size_t i) const { return names_[i]; }

  /// There is room: size() < kMost.
  void Add(std::string_view name) {
    sorted_.push_back(uint64_t{HashName(name)} << 32 | names_.size());
    names_.Add(name);
  }
  /// Of names that are there several times the first place counts, with what the last one stands for: calls
  /// `take(first, last)` for each of them, and, when there are any, `drop(gone)` with a mark for each name whether it
  /// goes. Positions move up then.
  template <typename Take, typename Drop>
  void Finish(const Take& take, const Drop& drop) {
    const std::vector<bool> gone = SortAndFind([&](uint32_t first, uint32_t last) { take(first, last); });
    if (gone.empty()) return;
    drop(gone);
    RemoveGone(gone);
  }
  /// The position of `name`, or kNone. After Finish().
  size_t Find(std::string_view name) const;
  void Clear();

  /// For `drop`: the values without those that go.
  template <typename T>
  static void Compact(const std::vector<bool>& gone, BigArray<T>* values) {
    size_t to = 0;
    for (size_t i = 0; i < values->size(); ++i) {
      if (!gone[i]) (*values)[to++] = (*values)[i];
    }
    values->resize(to);
  }

 private:
  std::vector<bool> SortAndFind(const std::function<void(uint32_t, uint32_t)>& take);
  void RemoveGone(const std::vector<bool>& gone);
  void MakeBuckets();
  size_t BucketOf(uint32_t hash) const { return static_cast<size_t>(uint64_t{hash} >> bucket_shift_); }

  NameList names_;
  BigArray<uint64_t> sorted_;   // hash and position; names of one hash by name
  BigArray<uint32_t> buckets_;  // where the hashes of one start start in sorted_
  unsigned bucket_shift_ = 32;
};

}  // namespace msprobe
