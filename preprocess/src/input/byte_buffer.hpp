// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

namespace millrace::preprocess {

/// A text must be followed by this many readable bytes, because JSON parsers read past its end.
inline constexpr std::size_t text_padding_bytes = 96;

/// A growable byte buffer that is reused and never cleared. Allocating a new memory page takes
/// longer than processing the bytes in it, so the pipeline reuses its buffers.
class byte_buffer {
 public:
  std::byte* data() noexcept { return data_.get(); }
  const std::byte* data() const noexcept { return data_.get(); }
  std::size_t capacity() const noexcept { return capacity_; }

  /// Makes room for `size` bytes and keeps the first `used` bytes. If the buffer must grow, it
  /// grows by at least half of its capacity.
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
