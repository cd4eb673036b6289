// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/formats/detail/varint.hpp>

namespace millrace::formats {

/// Writes structs in Thrift's compact protocol: only the types that the metadata of Parquet needs.
///
/// `fields` writes a struct: it calls a function that writes the fields, each with its number from
/// the definition of the struct, in rising order. Not thread-safe.
class thrift_writer {
 public:
  /// Types of the elements of lists. The values are on disk.
  enum class element : std::uint8_t { int32 = 5, text = 8, structure = 12 };

  /// Writes a struct that is the whole message, or the next element of a list.
  template <class Write>
  void fields(Write&& write) {
    const unsigned outer = std::exchange(last_field_, 0);
    write();
    put(0);  // no further field
    last_field_ = outer;
  }

  void field_bool(unsigned field, bool value) { begin_field(field, value ? 1 : 2); }
  void field_int8(unsigned field, std::int8_t value) {
    begin_field(field, 3);
    put(static_cast<std::uint8_t>(value));
  }
  void field_int32(unsigned field, std::int32_t value) {
    begin_field(field, 5);
    put_int32(value);
  }
  void field_int64(unsigned field, std::int64_t value) {
    begin_field(field, 6);
    put_unsigned(zigzag(static_cast<std::uint64_t>(value)));
  }
  void field_text(unsigned field, std::string_view text) {
    begin_field(field, 8);
    put_text(text);
  }
  template <class Write>
  void field_struct(unsigned field, Write&& write) {
    begin_field(field, 12);
    fields(write);
  }
  /// Begins a list. Then call `put_int32`, `put_text` or `fields` for each of `count` elements.
  void field_list(unsigned field, element type, std::uint32_t count) {
    begin_field(field, 9);
    const auto code = static_cast<std::uint8_t>(type);
    put(static_cast<std::uint8_t>((count < 15 ? count << 4 : 0xF0U) | code));
    if (count >= 15) put_unsigned(count);
  }

  void put_int32(std::int32_t value) {
    put_unsigned(zigzag(static_cast<std::uint64_t>(std::int64_t{value})));
  }
  void put_text(std::string_view text) {
    put_unsigned(text.size());
    append(std::as_bytes(std::span(text)));
  }
  /// Appends elements of a list that another writer encoded.
  void append(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  const std::vector<std::byte>& bytes() const noexcept { return bytes_; }
  std::vector<std::byte> take() noexcept { return std::exchange(bytes_, {}); }

 private:
  void put(std::uint8_t byte) { bytes_.push_back(static_cast<std::byte>(byte)); }
  void put_unsigned(std::uint64_t value) {
    std::array<std::byte, most_varint_bytes> buffer;
    append(std::span(buffer.data(), put_varint(buffer.data(), value)));
  }
  /// One byte holds the type and the distance from the previous field, which fits: no struct of
  /// Parquet's metadata has more than 15 fields.
  void begin_field(unsigned field, std::uint8_t type) {
    assert(field > last_field_ && field - last_field_ <= 15);
    put(static_cast<std::uint8_t>((field - last_field_) << 4 | type));
    last_field_ = field;
  }

  std::vector<std::byte> bytes_;
  unsigned last_field_ = 0;  // of the struct that is being written
};

}  // namespace millrace::formats
