// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace millrace::io {

/// Sole owner of a resource that a value identifies: a descriptor, a mapping, a stream.
///
/// `Empty` is the value that owns nothing. `Close(value)` closes the resource and must not throw.
/// No other class of the project closes anything: every owner of a resource holds a unique_handle.
///
/// Move assignment swaps. So the target's old resource is closed when the source is destroyed. If
/// the source is a temporary, this happens at once.
template <class T, T Empty, auto Close>
class unique_handle {
 public:
  unique_handle() = default;
  explicit unique_handle(T value) noexcept : value_(value) {}
  unique_handle(unique_handle&& other) noexcept : value_(other.release()) {}
  unique_handle& operator=(unique_handle&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~unique_handle() {
    if (value_ != Empty) (void)Close(value_);
  }

  const T& get() const noexcept { return value_; }
  /// Gives up ownership without closing.
  [[nodiscard]] T release() noexcept { return std::exchange(value_, Empty); }
  /// Closes the resource now.
  void reset() noexcept { *this = unique_handle(); }
  explicit operator bool() const noexcept { return value_ != Empty; }

 private:
  T value_ = Empty;
};

}  // namespace millrace::io
