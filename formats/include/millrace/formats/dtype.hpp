// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

// Example:
//
//     const auto type = millrace::formats::dtype_for_vocabulary(128256);  // int32
//     const auto bytes = 4096 * millrace::formats::size_bytes(type);      // 16384

namespace millrace::formats {

/// The type of a dataset's tokens. Files contain these values (byte 17 of an `.idx`), so never
/// renumber them. Code 6 is float64 and code 7 is float32. See formats/spec/mmidx.md.
enum class dtype : std::uint8_t {
  uint8 = 1,
  int8 = 2,
  int16 = 3,
  int32 = 4,
  int64 = 5,
  float64 = 6,
  float32 = 7,
  uint16 = 8,
};

/// Returns the dtype that has this code in files; nullopt if no dtype has this code.
constexpr std::optional<dtype> dtype_from_code(std::uint8_t code) noexcept {
  if (code < 1 || code > 8) return std::nullopt;
  return static_cast<dtype>(code);
}

/// Size of one element in bytes.
constexpr std::size_t size_bytes(dtype type) noexcept {
  switch (type) {
    case dtype::uint8:
    case dtype::int8:
      return 1;
    case dtype::int16:
    case dtype::uint16:
      return 2;
    case dtype::int32:
    case dtype::float32:
      return 4;
    case dtype::int64:
    case dtype::float64:
      return 8;
  }
  return 0;
}

/// numpy's name for the type, e.g. "uint16".
constexpr std::string_view name(dtype type) noexcept {
  switch (type) {
    case dtype::uint8:
      return "uint8";
    case dtype::int8:
      return "int8";
    case dtype::int16:
      return "int16";
    case dtype::int32:
      return "int32";
    case dtype::int64:
      return "int64";
    case dtype::float64:
      return "float64";
    case dtype::float32:
      return "float32";
    case dtype::uint16:
      return "uint16";
  }
  return "";
}

/// The dtype that holds `T`, which must be one of the eight types that a dataset can hold.
template <class T>
constexpr dtype dtype_of() noexcept {
  if constexpr (std::is_same_v<T, std::uint8_t>)
    return dtype::uint8;
  else if constexpr (std::is_same_v<T, std::int8_t>)
    return dtype::int8;
  else if constexpr (std::is_same_v<T, std::int16_t>)
    return dtype::int16;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return dtype::int32;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return dtype::int64;
  else if constexpr (std::is_same_v<T, double>)
    return dtype::float64;
  else if constexpr (std::is_same_v<T, float>)
    return dtype::float32;
  else {
    static_assert(std::is_same_v<T, std::uint16_t>, "no dtype holds this type");
    return dtype::uint16;
  }
}

/// Calls `f(T{})`, where T is the C++ type of `type`. `f` is usually a generic lambda.
template <class F>
constexpr decltype(auto) with_type(dtype type, F&& f) {
  switch (type) {
    case dtype::uint8:
      return f(std::uint8_t{});
    case dtype::int8:
      return f(std::int8_t{});
    case dtype::int16:
      return f(std::int16_t{});
    case dtype::int32:
      return f(std::int32_t{});
    case dtype::int64:
      return f(std::int64_t{});
    case dtype::float64:
      return f(double{});
    case dtype::float32:
      return f(float{});
    case dtype::uint16:
      break;
  }
  return f(std::uint16_t{});
}

/// The dtype in which Megatron stores ids: uint16 for vocabularies of fewer than 65,500 entries
/// (not 65,536), int32 for larger vocabularies.
constexpr dtype dtype_for_vocabulary(std::int64_t vocab_size) noexcept {
  return vocab_size < 65500 ? dtype::uint16 : dtype::int32;
}

}  // namespace millrace::formats
