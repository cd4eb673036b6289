// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

namespace millrace::parquet::detail {

/// Bytes that may be read past the end of every buffer that holds values, so that loops can load
/// whole words. What they hold does not matter.
inline constexpr std::size_t padding_bytes = 128;

/// Memory that grows without being set to 0 first. Unused pages of it cost nothing.
class buffer {
 public:
  /// Makes room for `size` bytes. Keeps the first `kept` bytes; the others are undefined.
  char* grow(std::size_t size, std::size_t kept = 0) {
    if (size > capacity_) {
      auto larger = std::make_unique_for_overwrite<char[]>(size + padding_bytes);
      if (kept != 0) std::memcpy(larger.get(), bytes_.get(), kept);
      // The tail is read, though never used.
      std::memset(larger.get() + size, 0, padding_bytes);
      bytes_ = std::move(larger);
      capacity_ = size;
    }
    return bytes_.get();
  }
  char* data() noexcept { return bytes_.get(); }
  const char* data() const noexcept { return bytes_.get(); }
  std::size_t capacity() const noexcept { return capacity_; }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
};

}  // namespace millrace::parquet::detail
