// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace millrace::tokenizer {

/// Ids of a text while they are being found: grows at its end, and is not cleared as it grows.
///
/// Keeps its memory over clear(), so that one buffer serves many texts. Pointers and spans are
/// valid until the next call that may grow it. One thread.
class id_buffer {
 public:
  std::size_t size() const noexcept { return size_; }
  std::span<const std::int32_t> ids() const noexcept { return {data_.get(), size_}; }
  std::span<std::int32_t> ids() noexcept { return {data_.get(), size_}; }

  /// Where the next `count` ids may be written, in any order; they count once they are added.
  std::int32_t* room(std::size_t count) {
    if (capacity_ - size_ < count) reserve(size_ + count);
    return data_.get() + size_;
  }
  /// The first `count` ids in the room become part of the buffer.
  /// @pre room(count) was asked for since the last change
  void add(std::size_t count) noexcept {
    assert(count <= capacity_ - size_);
    size_ += count;
  }

  void push_back(std::int32_t id) {
    *room(1) = id;
    ++size_;
  }
  void append(std::span<const std::int32_t> ids) {
    std::copy(ids.begin(), ids.end(), room(ids.size()));
    size_ += ids.size();
  }

  /// @pre size <= size()
  void truncate(std::size_t size) noexcept {
    assert(size <= size_);
    size_ = size;
  }
  void clear() noexcept { size_ = 0; }

  /// Gives memory back if it is more than `kept` ids, after a text far longer than others.
  void shrink_to(std::size_t kept) {
    if (capacity_ <= kept || size_ != 0) return;
    data_.reset();
    capacity_ = 0;
  }

 private:
  void reserve(std::size_t wanted) {
    const std::size_t grown = std::max({wanted, capacity_ + capacity_ / 2, std::size_t{1024}});
    std::unique_ptr<std::int32_t[]> moved(new std::int32_t[grown]);  // not set to zero
    std::copy(data_.get(), data_.get() + size_, moved.get());
    data_ = std::move(moved);
    capacity_ = grown;
  }

  std::unique_ptr<std::int32_t[]> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace millrace::tokenizer
