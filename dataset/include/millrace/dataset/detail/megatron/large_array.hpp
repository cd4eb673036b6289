// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>

#include <millrace/formats/detail/unaligned_span.hpp>
#include <millrace/io/file_mapping.hpp>

namespace millrace::dataset {

/// An owned array of numbers, initially 0, for arrays of many megabytes that are accessed in random
/// order. Uses huge pages if the kernel provides them. Moving the object does not move the numbers.
template <class T>
class large_array {
 public:
  large_array() = default;

  /// @throws std::bad_alloc
  explicit large_array(std::size_t size) : size_(size) {
    if (size == 0) return;
    if (size > SIZE_MAX / sizeof(T)) throw std::bad_alloc();
    void* address = ::mmap(nullptr, size * sizeof(T), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) throw std::bad_alloc();
    region_ = io::detail::unique_region({address, size * sizeof(T)});
    (void)::madvise(address, size * sizeof(T), MADV_HUGEPAGE);  // not supported by all kernels
  }

  std::span<T> numbers() noexcept { return {static_cast<T*>(region_.get().address), size_}; }
  std::span<const T> numbers() const noexcept {
    return {static_cast<const T*>(region_.get().address), size_};
  }
  std::span<const std::byte> bytes() const noexcept { return std::as_bytes(numbers()); }

 private:
  io::detail::unique_region region_;
  std::size_t size_ = 0;
};

/// Copies the numbers to a `large_array`, which can be accessed fast in any order.
template <class T>
large_array<T> large_copy(formats::unaligned_span<T> numbers) {
  large_array<T> copy(numbers.size());
  if (!numbers.empty()) {
    std::memcpy(copy.numbers().data(), numbers.bytes().data(), numbers.bytes().size());
  }
  return copy;
}

}  // namespace millrace::dataset
