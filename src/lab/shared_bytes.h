// Memory into which a process of ours writes results: they are judged where they lie, instead of going through a
// socket.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

namespace msprobe {

/// One file without a name, in parts: while the results of one call are judged, those of the next are written.
class SharedBytes {
 public:
  static constexpr int kParts = 2;
  /// Where part n begins: n times this. The file has holes.
  static constexpr uint64_t kPartSize = uint64_t{1} << 40;
  /// Each run of bytes begins at a multiple of this.
  static constexpr size_t kAligned = 64;

  /// Null where the system has no such memory: bytes go through the socket then.
  static std::shared_ptr<SharedBytes> Open();
  ~SharedBytes();
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;

  int descriptor() const { return descriptor_; }

  /// A part for one call, free again when this goes.
  class Part {
   public:
    Part(std::shared_ptr<SharedBytes> owner, int number) : owner_(std::move(owner)), number_(number) {}
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    ~Part();
    int number() const { return number_; }
    /// The first `bytes` bytes; empty when there are fewer.
    std::string_view Read(uint64_t bytes);

   private:
    std::shared_ptr<SharedBytes> owner_;
    int number_;
  };
  /// Null while all are in use.
  static std::unique_ptr<Part> Take(const std::shared_ptr<SharedBytes>& owner);

 private:
  explicit SharedBytes(int descriptor) : descriptor_(descriptor) {}

  struct Place {
    std::atomic<bool> taken{false};
    char* map = nullptr;
    size_t mapped = 0;
  };
  int descriptor_;
  Place places_[kParts];
};

}  // namespace msprobe
