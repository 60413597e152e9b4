// Arrays that may outgrow memory. What all of them hold in memory is bounded for the whole process; an array that would
// go beyond lies in a file without a name instead, whose pages come and go as they are used.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace msprobe {

/// Where the files are made; without it, and where a file cannot be made, TMPDIR or /tmp.
void SetSpillDirectory(const std::string& path);
/// How much arrays may hold in memory, all together. For tests; returns the bound so far.
size_t SetBigArrayMemory(size_t bytes);
/// How much they hold in memory, and in files, at the moment. Arrays below a megabyte do not count.
struct BigArrayUse {
  size_t memory = 0, files = 0;
};
BigArrayUse UseOfBigArrays();

/// The bytes of an array.
class BigBlock {
 public:
  BigBlock() = default;
  BigBlock(BigBlock&& o) noexcept { Swap(&o); }
  BigBlock& operator=(BigBlock&& o) noexcept {
    Swap(&o);
    return *this;
  }
  ~BigBlock();
  char* data() const { return data_; }
  size_t capacity() const { return capacity_; }
  /// Makes room for `bytes`; the first `used` bytes stay. Throws std::bad_alloc as a vector does.
  void Reserve(size_t bytes, size_t used);
  bool InFile() const { return fd_ >= 0; }

 private:
  enum class Kind : unsigned char { kHeap, kMemory, kFile };
  void Swap(BigBlock* o) noexcept {
    std::swap(data_, o->data_);
    std::swap(capacity_, o->capacity_);
    std::swap(fd_, o->fd_);
    std::swap(kind_, o->kind_);
  }
  void GrowHeap(size_t bytes);
  bool GrowMemory(size_t bytes, size_t used);
  bool GrowFile(size_t bytes);
  bool MoveToFile(size_t bytes, size_t used);
  void MoveToMemory(size_t bytes, size_t used);
  void Free();

  char* data_ = nullptr;
  size_t capacity_ = 0;
  int fd_ = -1;
  Kind kind_ = Kind::kHeap;
};

/// A vector of plain values.
template <typename T>
class BigArray {
  static_assert(std::is_trivially_copyable_v<T>, "values are moved byte by byte");

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  BigArray() = default;
  explicit BigArray(size_t n) { resize(n); }
  BigArray(size_t n, const T& value) { resize(n, value); }
  BigArray(std::initializer_list<T> values) { append(values.begin(), values.size()); }
  BigArray(const BigArray& o) { append(o.data(), o.size()); }
  BigArray(BigArray&& o) noexcept : block_(std::move(o.block_)), size_(std::exchange(o.size_, 0)) {}
  BigArray& operator=(const BigArray& o) {
    if (this == &o) return *this;
    clear();
    append(o.data(), o.size());
    return *this;
  }
  BigArray& operator=(BigArray&& o) noexcept {
    block_ = std::move(o.block_);
    std::swap(size_, o.size_);
    return *this;
  }
  ~BigArray() = default;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return reinterpret_cast<T*>(block_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(block_.data()); }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& front() { return data()[0]; }
  const T& front() const { return data()[0]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }
  bool InFile() const { return block_.InFile(); }

  void reserve(size_t n) {
    if (n * sizeof(T) > block_.capacity()) block_.Reserve(n * sizeof(T), size_ * sizeof(T));
  }
  void push_back(const T& value) {
    const T copy = value;  // it may lie in the array
    reserve(size_ + 1);
    new (data() + size_) T(copy);
    ++size_;
  }
  void append(const T* values, size_t n) {
    if (n == 0) return;
    reserve(size_ + n);
    std::memcpy(static_cast<void*>(data() + size_), values, n * sizeof(T));
    size_ += n;
  }
  void resize(size_t n, const T& value = T()) {
    reserve(n);
    for (; size_ < n; ++size_) new (data() + size_) T(value);
    size_ = n;
  }
  void assign(size_t n, const T& value) {
    clear();
    resize(n, value);
  }
  void clear() { size_ = 0; }
  void pop_back() { --size_; }

 private:
  BigBlock block_;
  size_t size_ = 0;
};

template <typename T>
bool operator==(const BigArray<T>& a, const BigArray<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}
template <typename T>
bool operator==(const BigArray<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace msprobe
