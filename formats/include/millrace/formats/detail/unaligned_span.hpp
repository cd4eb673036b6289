// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace millrace::formats {

/// Read-only view of an array of `T` at any address, aligned or not. The bytes must outlive the
/// view.
///
/// No array of an `.idx` is aligned (the first array starts at byte 34). So a `std::span<const T>`
/// over such an array would be undefined behavior. In this class, each access is a memcpy, which
/// compiles to one load.
template <class T>
requires std::is_trivially_copyable_v<T>
class unaligned_span {
 public:
  unaligned_span() = default;
  /// @pre bytes.size() is a multiple of sizeof(T)
  explicit unaligned_span(std::span<const std::byte> bytes) noexcept
      : data_(bytes.data()), size_(bytes.size() / sizeof(T)) {
    assert(bytes.size() % sizeof(T) == 0);
  }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

  /// @pre i < size()
  T operator[](std::size_t i) const noexcept {
    assert(i < size_);
    T value;
    std::memcpy(&value, data_ + i * sizeof(T), sizeof(T));
    return value;
  }

  /// @pre size() > 0
  T back() const noexcept { return (*this)[size_ - 1]; }

  std::span<const std::byte> bytes() const noexcept { return {data_, size_ * sizeof(T)}; }

  /// An aligned copy, for code that reads the array often or needs a `std::span<const T>`.
  std::vector<T> to_vector() const {
    std::vector<T> copy(size_);
    if (size_ != 0) std::memcpy(copy.data(), data_, size_ * sizeof(T));
    return copy;
  }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace millrace::formats
