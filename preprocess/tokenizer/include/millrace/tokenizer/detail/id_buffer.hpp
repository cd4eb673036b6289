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

/// A growing array of ids. New memory is not set to zero.
///
/// clear() keeps the memory, so one buffer can serve many texts. Pointers and spans are valid until
/// the next call that may grow the buffer. Use it from one thread.
///
///     millrace::tokenizer::id_buffer ids;
///     ids.push_back(42);
///     for (const std::int32_t id : ids.ids()) std::cout << id << '\n';
class id_buffer {
 public:
  std::size_t size() const noexcept { return size_; }
  std::span<const std::int32_t> ids() const noexcept { return {data_.get(), size_}; }
  std::span<std::int32_t> ids() noexcept { return {data_.get(), size_}; }

  /// Returns space for the next `count` ids. After writing them there, call add().
  std::int32_t* room(std::size_t count) {
    if (capacity_ - size_ < count) reserve(size_ + count);
    return data_.get() + size_;
  }
  /// Makes the first `count` ids written to room() part of the buffer.
  /// @pre room() was called for at least `count` ids since the last change
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

  /// Call this after an unusually long text. If the buffer is empty and has memory for more than
  /// `kept` ids, frees all of its memory.
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
