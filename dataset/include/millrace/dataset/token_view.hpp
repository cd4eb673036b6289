// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

#include <millrace/error.hpp>
#include <millrace/formats/dtype.hpp>

namespace millrace::dataset {

/// Read-only run of tokens in the type that the file holds them in, known at run time.
///
/// The bytes must outlive the view; copies of a view are cheap and see the same bytes. Positions
/// and sizes are in tokens. For one token at a time there is `[]`; for many, `copy_to` (any dtype)
/// or `as<T>` (no copy) decide on the dtype once.
class token_view {
 public:
  token_view() = default;

  /// @param bytes  at any address; only `as<T>` needs them aligned, as they are in a dataset
  /// @pre `bytes.size()` is a multiple of the item size.
  token_view(formats::dtype type, std::span<const std::byte> bytes) noexcept
      : bytes_(bytes), item_(formats::size_bytes(type)), type_(type) {
    assert(bytes.size() % item_ == 0);
  }

  formats::dtype type() const noexcept { return type_; }
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(bytes_.size() / item_); }
  bool empty() const noexcept { return bytes_.empty(); }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

  /// Token `i` as an id. A float is cut towards zero; one outside int64 gives the nearest end of
  /// its range, NaN gives 0.
  ///
  /// @pre 0 <= i < size()
  std::int64_t operator[](std::int64_t i) const noexcept;

  /// Token `i` as a number; exact but for int64 beyond 2^53.
  ///
  /// @pre 0 <= i < size()
  double as_double(std::int64_t i) const noexcept;

  /// Tokens `first` to `first + count - 1`.
  ///
  /// @pre 0 <= first, 0 <= count, first + count <= size()
  token_view subview(std::int64_t first, std::int64_t count) const noexcept;

  /// The tokens in place.
  ///
  /// @pre the bytes are aligned for T, as those of every view that a dataset gives.
  /// @throws config_error  T is not the C++ type of `type()`.
  template <class T>
  std::span<const T> as() const;

  /// Copies all tokens, converted to T.
  ///
  /// @pre out.size() == size(), and `out` does not overlap the bytes.
  /// @throws config_error  T cannot hold every value of `type()`, e.g. int32 of int64, or an
  ///                       integer of a float.
  template <class T>
  void copy_to(std::span<T> out) const;

  /// Same dtype, same bytes.
  friend bool operator==(const token_view& a, const token_view& b) noexcept {
    return a.type_ == b.type_ && std::ranges::equal(a.bytes_, b.bytes_);
  }

 private:
  template <class T>
  T load(std::int64_t i) const noexcept {
    T value;
    std::memcpy(&value, bytes_.data() + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    return value;
  }

  std::span<const std::byte> bytes_;
  std::size_t item_ = formats::size_bytes(formats::dtype::uint16);
  formats::dtype type_ = formats::dtype::uint16;
};

/// Whether every value of `From` is a value of `To`: what `copy_to` allows.
template <class To, class From>
inline constexpr bool holds_every = (std::is_integral_v<From> ||
                                     std::is_floating_point_v<To>)&&std::numeric_limits<To>::digits
                                        >= std::numeric_limits<From>::digits
                                    && (std::is_signed_v<To> || !std::is_signed_v<From>);

// ---------------------------------------------------------------------------------------------

namespace detail {

// A cast of a double outside int64 is undefined, and a file may hold any.
inline std::int64_t to_id(double value) noexcept {
  constexpr double limit = 0x1p63;
  if (value >= limit) return std::numeric_limits<std::int64_t>::max();
  if (value < -limit) return std::numeric_limits<std::int64_t>::min();
  return value == value ? static_cast<std::int64_t>(value) : 0;
}

// Loads through memcpy, as the source may lie at any address; compiles to vector conversions.
template <class From, class To>
void convert(const std::byte* __restrict from, To* __restrict to, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * sizeof(From), sizeof(From));
    to[i] = static_cast<To>(value);
  }
}

}  // namespace detail

inline std::int64_t token_view::operator[](std::int64_t i) const noexcept {
  assert(0 <= i && i < size());
  return formats::with_type(type_, [&]<class T>(T) -> std::int64_t {
    if constexpr (std::is_floating_point_v<T>) {
      return detail::to_id(static_cast<double>(load<T>(i)));
    } else {
      return static_cast<std::int64_t>(load<T>(i));
    }
  });
}

inline double token_view::as_double(std::int64_t i) const noexcept {
  assert(0 <= i && i < size());
  return formats::with_type(type_, [&]<class T>(T) { return static_cast<double>(load<T>(i)); });
}

inline token_view token_view::subview(std::int64_t first, std::int64_t count) const noexcept {
  assert(0 <= first && first <= size() && 0 <= count && count <= size() - first);
  return {type_, bytes_.subspan(static_cast<std::size_t>(first) * item_,
                                static_cast<std::size_t>(count) * item_)};
}

template <class T>
std::span<const T> token_view::as() const {
  if (formats::dtype_of<T>() != type_) {
    throw config_error("tokens are " + std::string(formats::name(type_)) + ", requested as " +
                       std::string(formats::name(formats::dtype_of<T>())));
  }
  assert(reinterpret_cast<std::uintptr_t>(bytes_.data()) % alignof(T) == 0);
  return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
}

template <class T>
void token_view::copy_to(std::span<T> out) const {
  assert(static_cast<std::int64_t>(out.size()) == size());
  formats::with_type(type_, [&]<class From>(From) {
    if constexpr (std::is_same_v<From, T>) {
      if (!empty()) std::memcpy(out.data(), bytes_.data(), bytes_.size());
    } else if constexpr (holds_every<T, From>) {
      detail::convert<From>(bytes_.data(), out.data(), out.size());
    } else {
      throw config_error("tokens are " + std::string(formats::name(type_)) +
                         ", whose values do not all fit the " + std::to_string(8 * sizeof(T)) +
                         (std::is_floating_point_v<T> ? "-bit floats" : "-bit integers") +
                         " asked for");
    }
  });
}

}  // namespace millrace::dataset
