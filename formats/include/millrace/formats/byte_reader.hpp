// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include <millrace/error.hpp>

namespace millrace::formats {

static_assert(std::endian::native == std::endian::little,
              "every format here is little-endian and read without swapping");

/// What a field may be. No bool: a byte in a file need not be 0 or 1.
template <class T>
concept plain_number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

/// Reads fields off the front of a span, each bounds-checked.
///
/// A header struct lists its fields once, in a `fields(io, header)` template that this class and
/// `byte_writer` both drive, so that reader and writer cannot disagree.
class byte_reader {
 public:
  explicit byte_reader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  /// @throws format_error  fewer bytes are left than the field takes.
  template <plain_number T>
  void operator()(const char* field, T& value) {
    std::memcpy(&value, take(field, sizeof(T)).data(), sizeof(T));
  }

  /// The next `size` bytes.
  ///
  /// @throws format_error  fewer are left.
  std::span<const std::byte> take(const char* field, std::uint64_t size) {
    if (size > bytes_.size() - offset_) {
      throw format_error(offset_, std::string("file ends inside ") + field + ", which needs " +
                                      std::to_string(size) + " bytes of the " +
                                      std::to_string(bytes_.size() - offset_) + " left");
    }
    const auto part = bytes_.subspan(offset_, size);
    offset_ += size;
    return part;
  }

  std::size_t offset() const noexcept { return offset_; }
  std::size_t remaining() const noexcept { return bytes_.size() - offset_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t offset_ = 0;  // <= bytes_.size()
};

}  // namespace millrace::formats
