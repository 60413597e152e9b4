#include "dump/name_list.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/page_trim.h"

namespace msprobe {

void NameList::Add(std::string_view name) {
  const std::less_equal<const char*> not_behind;
  const bool here = !name.empty() && not_behind(file_.data(), name.data()) &&
                    not_behind(name.data() + name.size(), file_.data() + file_.size());
  const uint64_t size = std::min<uint64_t>(name.size(), kLong);
  if (here) {
    // A long name ends at the first quote behind it, for it is in the file as it is meant.
    places_.push_back(size << kSizeShift | static_cast<uint64_t>(name.data() - file_.data()));
    return;
  }
  places_.push_back(size << kSizeShift | kOwn | own_.size());
  if (size == kLong) {
    const uint64_t whole = name.size();
    own_.append(reinterpret_cast<const char*>(&whole), sizeof whole);
  }
  own_.append(name.data(), name.size());
}

std::string_view NameList::LongName(uint64_t place) const {
  const uint64_t begin = place & kBeginBits;
  if ((place & kOwn) == 0) return file_.substr(begin, file_.find('"', begin) - begin);
  uint64_t size = 0;
  std::memcpy(&size, own_.data() + begin, sizeof size);
  return {own_.data() + begin + sizeof size, size};
}

void NameList::Clear() {
  places_ = {};
  own_ = {};
}

void NameList::Remove(const std::vector<bool>& gone) { NamesByHash::Compact(gone, &places_); }

void NamesByHash::Clear() {
  names_.Clear();
  sorted_ = {};
  buckets_ = {};
  bucket_shift_ = 32;
}

std::vector<bool> NamesByHash::SortAndFind(const std::function<void(uint32_t, uint32_t)>& take) {
  std::sort(sorted_.begin(), sorted_.end());
  std::vector<bool> gone;
  constexpr size_t kSharedBetweenTrims = 16;  // names of one hash are anywhere in the file, each brings pages around it
  size_t shared = 0;
  for (size_t begin = 0, end = 0; begin < sorted_.size(); begin = end) {
    const uint64_t hash = sorted_[begin] >> 32;
    for (end = begin + 1; end < sorted_.size() && sorted_[end] >> 32 == hash;) ++end;
    if (end == begin + 1) continue;
    if (++shared % kSharedBetweenTrims == 0) TrimMaps();
    // However many there are of one hash, and of one name: they are sorted, not compared each with each.
    std::sort(sorted_.begin() + begin, sorted_.begin() + end, [&](uint64_t a, uint64_t b) {
      const std::string_view x = names_[static_cast<uint32_t>(a)], y = names_[static_cast<uint32_t>(b)];
      return x != y ? x < y : a < b;
    });
    for (size_t i = begin, next = begin; i < end; i = next) {
      const auto first = static_cast<uint32_t>(sorted_[i]);
      for (next = i + 1; next < end && names_[static_cast<uint32_t>(sorted_[next])] == names_[first]; ++next) {
        gone.resize(names_.size(), false);
        gone[static_cast<uint32_t>(sorted_[next])] = true;
      }
      if (next > i + 1) take(first, static_cast<uint32_t>(sorted_[next - 1]));
    }
  }
  if (gone.empty()) MakeBuckets();
  return gone;
}

void NamesByHash::RemoveGone(const std::vector<bool>& gone) {
  BigArray<uint32_t> place;  // of what stays
  uint32_t stay = 0;
  for (const bool g : gone) place.push_back(g ? stay : stay++);
  size_t to = 0;
  for (const uint64_t entry : sorted_) {
    const auto at = static_cast<uint32_t>(entry);
    if (!gone[at]) sorted_[to++] = entry >> 32 << 32 | place[at];
  }
  sorted_.resize(to);
  names_.Remove(gone);
  MakeBuckets();
}

void NamesByHash::MakeBuckets() {
  constexpr size_t kNamesPerBucket = 8;
  bucket_shift_ = 32;
  while (bucket_shift_ > 0 && (sorted_.size() >> (32 - bucket_shift_)) > kNamesPerBucket) --bucket_shift_;
  buckets_ = {};
  const size_t buckets = size_t{1} << (32 - bucket_shift_);
  buckets_.reserve(buckets + 1);
  for (size_t i = 0; i < sorted_.size(); ++i) {
    const size_t bucket = BucketOf(static_cast<uint32_t>(sorted_[i] >> 32));
    while (buckets_.size() <= bucket) buckets_.push_back(static_cast<uint32_t>(i));
  }
  while (buckets_.size() <= buckets) buckets_.push_back(static_cast<uint32_t>(sorted_.size()));
}

size_t NamesByHash::Find(std::string_view name) const {
  if (buckets_.empty()) return kNone;
  const uint32_t hash = HashName(name);
  const size_t bucket = BucketOf(hash);
  const uint64_t* const end = sorted_.data() + buckets_[bucket + 1];
  const uint64_t* at = std::lower_bound(sorted_.data() + buckets_[bucket], end, uint64_t{hash} << 32,
                                        [](uint64_t a, uint64_t b) { return a >> 32 < b >> 32; });
  // Mostly there is one of the hash.
  if (at == end || *at >> 32 != hash) return kNone;
  if (names_[static_cast<uint32_t>(*at)] == name) return static_cast<uint32_t>(*at);
  at = std::lower_bound(at, end, name, [&](uint64_t a, std::string_view b) {
    return a >> 32 == hash && names_[static_cast<uint32_t>(a)] < b;
  });
  if (at == end || *at >> 32 != hash || names_[static_cast<uint32_t>(*at)] != name) return kNone;
  return static_cast<uint32_t>(*at);
}

}  // namespace msprobe
