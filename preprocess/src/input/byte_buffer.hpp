// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

namespace millrace::preprocess {

/// Bytes of any value that must be readable after a text: parsers of JSON read beyond its end.
inline constexpr std::size_t text_padding_bytes = 64;

/// Bytes that grow and are reused, and never cleared: a fresh page costs more than what is done
/// on it, so a buffer that went once round the pipeline is worth keeping.
class byte_buffer {
 public:
  std::byte* data() noexcept { return data_.get(); }
  const std::byte* data() const noexcept { return data_.get(); }
  std::size_t capacity() const noexcept { return capacity_; }

  /// Makes room for `size` bytes and keeps the first `used`. Grows by half at least.
  void reserve(std::size_t size, std::size_t used) {
    if (size <= capacity_) return;
    const std::size_t grown = std::max(size, capacity_ + capacity_ / 2);
    auto data = std::make_unique_for_overwrite<std::byte[]>(grown);
    if (used != 0) std::memcpy(data.get(), data_.get(), used);
    data_ = std::move(data);
    capacity_ = grown;
  }

 private:
  std::unique_ptr<std::byte[]> data_;
  std::size_t capacity_ = 0;
};

}  // namespace millrace::preprocess
