// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cassert>
#include <cstddef>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace millrace::tokenizer::detail {

/// A zeroed array of fixed size for tables that are accessed at random. It uses huge pages if the
/// kernel grants them, so that a look-up costs a cache miss but no TLB miss. It can also be a view
/// of an array in memory that is kept elsewhere (core/table_io.hpp).
template <class T>
class huge_array {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  using value_type = T;

  huge_array() = default;
  /// @throws std::bad_alloc
  explicit huge_array(std::size_t size) : size_(size) {
    if (size == 0) return;
    const std::size_t bytes = size * sizeof(T);
    mapped_bytes_ = bytes < huge_page ? bytes : bytes + huge_page;
    mapped_ =
        ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED) {
      mapped_ = nullptr;
      throw std::bad_alloc();
    }
    auto* begin = static_cast<std::byte*>(mapped_);
    if (bytes >= huge_page) {
      const std::size_t past = reinterpret_cast<std::size_t>(begin) % huge_page;
      if (past != 0) begin += huge_page - past;
      // These calls are only hints. If they fail, look-ups are slower, but nothing else changes.
      (void)::madvise(begin, bytes, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
      (void)::madvise(begin, bytes, MADV_POPULATE_WRITE);
#endif
    }
    data_ = reinterpret_cast<T*>(begin);  // T must accept zero bytes as a valid value
  }
  static huge_array view_of(std::span<T> elements) noexcept {
    huge_array view;
    view.data_ = elements.data();
    view.size_ = elements.size();
    return view;
  }
  huge_array(huge_array&& other) noexcept {
    swap(other);
  }
  huge_array& operator=(huge_array&& other) noexcept {
    swap(other);
    return *this;
  }
  ~huge_array() {
    if (mapped_ != nullptr) (void)::munmap(mapped_, mapped_bytes_);
  }

  T* data() noexcept {
    return data_;
  }
  const T* data() const noexcept {
    return data_;
  }
  std::size_t size() const noexcept {
    return size_;
  }
  T& operator[](std::size_t i) noexcept {
    assert(i < size_);
    return data_[i];
  }
  const T& operator[](std::size_t i) const noexcept {
    assert(i < size_);
    return data_[i];
  }

 private:
  static constexpr std::size_t huge_page = std::size_t{2} << 20;

  void swap(huge_array& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  void* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
};

}  // namespace millrace::tokenizer::detail
