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

/// The types that a field may have. Excludes bool, because a byte in a file need not be 0 or 1.
template <class T>
concept plain_number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

/// Reads fields from the front of a span, with a bounds check for each field.
///
/// A header struct lists its fields once, in a `fields(io, header)` template. This class and
/// `byte_writer` both pass themselves as `io`, so the reader and the writer always agree.
class byte_reader {
 public:
  explicit byte_reader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  /// Reads the next field. `field` is its name in messages.
  ///
  /// @throws format_error  fewer bytes are left than the field takes.
  template <plain_number T>
  void operator()(const char* field, T& value) {
    std::memcpy(&value, take(field, sizeof(T)).data(), sizeof(T));
  }

  /// Takes the next `size` bytes.
  ///
  /// @throws format_error  fewer than `size` bytes are left.
  std::span<const std::byte> take(const char* field, std::uint64_t size) {
    if (size > bytes_.size() - offset_) {
      throw format_error(offset_, std::string("file ends inside ") + field + ", which takes " +
                                      std::to_string(size) + " bytes: only " +
                                      std::to_string(bytes_.size() - offset_) + " are left");
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
