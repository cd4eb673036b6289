// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <millrace/error.hpp>

namespace millrace::tokenizer::detail {

/// Reads one message in the wire format of protocol buffers, field by field:
///
///   while (reader.next()) switch (reader.number()) ...
///
/// The caller skips fields that it does not know or whose kind it does not expect, as protobuf
/// does. Views point into the given bytes.
class wire_reader {
 public:
  /// @param offset  offset of `bytes` in the file, for error messages
  explicit wire_reader(std::string_view bytes, std::uint64_t offset = 0) noexcept
      : bytes_(bytes), base_(offset) {}

  /// Moves to the next field. Returns false at the end of the message.
  /// @throws format_error  the field is truncated, or its tag is invalid
  bool next();

  std::uint32_t number() const noexcept { return number_; }
  /// Offset of the field's tag in the file.
  std::uint64_t offset() const noexcept { return base_ + begin_; }

  bool is_number() const noexcept { return kind_ == varint; }
  bool is_float() const noexcept { return kind_ == fixed32; }
  bool is_bytes() const noexcept { return kind_ == length_delimited; }

  /// @pre is_number()
  std::uint64_t value() const noexcept { return value_; }
  /// @pre is_float()
  float as_float() const noexcept {
    const auto bits = static_cast<std::uint32_t>(value_);
    float result = 0;
    std::memcpy(&result, &bits, sizeof result);
    return result;
  }
  /// @pre is_bytes()
  std::string_view content() const noexcept { return content_; }
  /// @pre is_bytes()
  wire_reader message() const noexcept {
    return wire_reader(content_, base_ + at_ - content_.size());
  }

 private:
  enum kind : std::uint32_t { varint = 0, fixed64 = 1, length_delimited = 2, fixed32 = 5 };

  std::uint64_t read_varint();
  std::string_view take(std::uint64_t size);

  std::string_view bytes_;
  std::uint64_t base_;
  std::size_t begin_ = 0;
  std::size_t at_ = 0;
  std::uint32_t number_ = 0;
  std::uint32_t kind_ = varint;
  std::uint64_t value_ = 0;
  std::string_view content_;
};

inline bool wire_reader::next() {
  begin_ = at_;
  if (at_ == bytes_.size()) return false;
  const std::uint64_t tag = read_varint();
  kind_ = tag & 7;
  if (tag >> 3 == 0 || tag >> 32 != 0) {
    throw format_error(offset(), "expected a field of a protocol buffer");
  }
  number_ = static_cast<std::uint32_t>(tag >> 3);
  switch (kind_) {
    case varint:
      value_ = read_varint();
      return true;
    case fixed64:
      take(8);
      return true;
    case length_delimited:
      content_ = take(read_varint());
      return true;
    case fixed32: {
      std::uint32_t bits = 0;
      std::memcpy(&bits, take(4).data(), sizeof bits);
      value_ = bits;
      return true;
    }
    default:
      throw format_error(
          offset(), "a field has wire type " + std::to_string(kind_) + ", expected 0, 1, 2 or 5");
  }
}

inline std::uint64_t wire_reader::read_varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (at_ == bytes_.size()) throw format_error(base_ + at_, "a number is truncated");
    const auto byte = static_cast<unsigned char>(bytes_[at_++]);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
  throw format_error(base_ + at_, "a number takes more than 10 bytes");
}

inline std::string_view wire_reader::take(std::uint64_t size) {
  if (size > bytes_.size() - at_) {
    throw format_error(base_ + at_, "a field takes " + std::to_string(size) + " bytes, but only " +
                                        std::to_string(bytes_.size() - at_) + " are left");
  }
  const std::string_view taken = bytes_.substr(at_, size);
  at_ += size;
  return taken;
}

}  // namespace millrace::tokenizer::detail
