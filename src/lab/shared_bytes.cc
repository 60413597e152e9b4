#include "lab/shared_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

namespace msprobe {
namespace {

constexpr uint64_t kLeastMapped = 1 << 20;
constexpr uint64_t kMostKept = 16 << 20;  // of a part that is not in use

}  // namespace

std::shared_ptr<SharedBytes> SharedBytes::Open() {
  const int descriptor = memfd_create("msprobe", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return nullptr;
  // What is mapped here stays, whatever becomes of the process that writes.
  if (fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    close(descriptor);
    return nullptr;
  }
  return std::shared_ptr<SharedBytes>(new SharedBytes(descriptor));
}

SharedBytes::~SharedBytes() {
  for (const Place& place : places_) {
    if (place.map) munmap(place.map, place.mapped);
  }
  close(descriptor_);
}

std::unique_ptr<SharedBytes::Part> SharedBytes::Take(const std::shared_ptr<SharedBytes>& owner) {
  for (int i = 0; owner && i < kParts; ++i) {
    if (!owner->places_[i].taken.exchange(true, std::memory_order_acquire)) return std::make_unique<Part>(owner, i);
  }
  return nullptr;
}

SharedBytes::Part::~Part() {
  Place& place = owner_->places_[number_];
  if (place.mapped > kMostKept) {
    munmap(place.map, place.mapped);
    fallocate(owner_->descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(kPartSize) * number_,
              static_cast<off_t>(place.mapped));
    place.map = nullptr, place.mapped = 0;
  }
  place.taken.store(false, std::memory_order_release);
}

std::string_view SharedBytes::Part::Read(uint64_t bytes) {
  Place& place = owner_->places_[number_];
  const uint64_t begin = kPartSize * static_cast<uint64_t>(number_);
  struct stat file;
  if (bytes == 0 || bytes > kPartSize || fstat(owner_->descriptor_, &file) != 0 ||
      static_cast<uint64_t>(file.st_size) < begin + bytes)
    return {};
  if (bytes > place.mapped) {
    if (place.map) munmap(place.map, place.mapped);
    place.mapped = std::bit_ceil(std::max(bytes, kLeastMapped));
    void* map = mmap(nullptr, place.mapped, PROT_READ, MAP_SHARED, owner_->descriptor_, static_cast<off_t>(begin));
    if (map == MAP_FAILED) {
      place.map = nullptr, place.mapped = 0;
      return {};
    }
    place.map = static_cast<char*>(map);
  }
  return {place.map, bytes};
}

}  // namespace msprobe
