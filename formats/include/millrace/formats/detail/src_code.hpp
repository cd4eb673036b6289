// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include <millrace/error.hpp>
#include <millrace/formats/detail/varint.hpp>

namespace millrace::formats {

/// The place in the inputs from which a document comes. The document's record is the bytes [begin,
/// end) of the decompressed text of the input. It does not include the line end.
struct source_place {
  std::uint32_t input = 0;  ///< index into the table of inputs
  std::int64_t line = 1;    ///< counted from 1
  std::uint64_t begin = 0;  ///< first byte of the record
  std::uint64_t end = 0;    ///< byte after the record; at most 2^63 - 1

  friend bool operator==(const source_place&, const source_place&) = default;
};

/// Encodes and decodes the places of one group (64 documents of a `.src`). Each place is stored
/// relative to the place of the previous document. The rules are in formats/spec/src.md.
class src_code {
 public:
  /// Maximum number of bytes in the encoding of one document.
  static constexpr std::size_t most_bytes = 5 * most_varint_bytes;

  /// Encodes the first document of a group. Only the length of its record goes to `out`; the rest
  /// of `place` belongs in the directory of the `.src`.
  ///
  /// @return the position after the encoding
  std::byte* put_first(const source_place& place, std::byte* out) noexcept;
  /// Decodes the first document of a group.
  ///
  /// @param place  from the directory; its `end` is ignored
  /// @throws format_error  the encoding is invalid.
  void take_first(source_place place, varint_reader& from);

  /// Encodes the next document.
  ///
  /// @param out  must have room for `most_bytes`
  /// @return the position after the encoding
  std::byte* put(const source_place& place, std::byte* out) noexcept;
  /// Decodes the next document.
  ///
  /// @throws format_error  the encoding is invalid, or the input is not below `input_count`.
  void take(varint_reader& from, std::uint64_t input_count);

  /// The place of the document that was encoded or decoded last.
  const source_place& place() const noexcept { return place_; }

 private:
  // Bits of the flags byte. A set bit means that a value is stored. A value is stored only if it
  // differs from the expected value.
  static constexpr std::uint64_t input_told = 1;
  static constexpr std::uint64_t line_told = 2;
  static constexpr std::uint64_t begin_told = 4;

  void set_end(std::uint64_t length, std::uint64_t offset);
  void take_odd(varint_reader& from, std::uint64_t input_count);

  source_place place_;
  std::uint64_t gap_ = 1;  // expected bytes between this record and the next, modulo 2^64
};

// ---------------------------------------------------------------------------------------------

inline std::byte* src_code::put_first(const source_place& place, std::byte* out) noexcept {
  place_ = place;
  gap_ = 1;
  return put_varint(out, (place.end - place.begin) << 1);
}

inline void src_code::take_first(source_place place, varint_reader& from) {
  const std::uint64_t offset = from.offset();
  const std::uint64_t length = from.next("the length of a document");
  if ((length & 1) != 0) {
    throw format_error(offset, "the first document of a group refers to a previous document");
  }
  place_ = place;
  gap_ = 1;
  set_end(length >> 1, offset);
}

// Computes differences modulo 2^64, so that any place can be encoded relative to any other.
inline std::byte* src_code::put(const source_place& place, std::byte* out) noexcept {
  const std::uint64_t input = std::uint64_t{place.input} - place_.input;
  const bool jumps = input != 0;
  const std::uint64_t line = static_cast<std::uint64_t>(place.line) -
                             static_cast<std::uint64_t>(place_.line) - (jumps ? 0 : 1);
  const std::uint64_t begin = place.begin - (jumps ? place_.begin : place_.end + gap_);
  const std::uint64_t told =
      (jumps ? input_told : 0) | (line != 0 ? line_told : 0) | (begin != 0 ? begin_told : 0);
  out = put_varint(out, (place.end - place.begin) << 1 | (told != 0 ? 1 : 0));
  if (told != 0) {
    *out++ = static_cast<std::byte>(told);
    if (jumps) out = put_varint(out, zigzag(input));
    if (line != 0) out = put_varint(out, zigzag(line));
    if (begin != 0) out = put_varint(out, zigzag(begin));
    if (told == begin_told) gap_ += begin;
  }
  place_ = place;
  return out;
}

inline void src_code::take(varint_reader& from, std::uint64_t input_count) {
  const std::uint64_t offset = from.offset();
  const std::uint64_t length = from.next("the length of a document");
  if ((length & 1) != 0) {
    take_odd(from, input_count);
  } else {
    place_.line = static_cast<std::int64_t>(static_cast<std::uint64_t>(place_.line) + 1);
    place_.begin = place_.end + gap_;
  }
  if (place_.line < 1) {
    throw format_error(offset, "a document is at line " + std::to_string(place_.line) +
                                   " of its input, expected 1 or more");
  }
  set_end(length >> 1, offset);
}

inline void src_code::take_odd(varint_reader& from, std::uint64_t input_count) {
  const std::uint64_t offset = from.offset();
  const std::uint64_t told = from.next("the flags of a document");
  if (told == 0 || told > 7) {
    throw format_error(
        offset, "expected 1 to 7 for the flags of a document, found " + std::to_string(told));
  }
  const auto difference = [&](std::uint64_t part, const char* field) -> std::uint64_t {
    if ((told & part) == 0) return 0;
    const std::uint64_t at = from.offset();
    const std::uint64_t value = from.next(field);
    if (value == 0) throw format_error(at, std::string(field) + " is stored, but is as expected");
    return from_zigzag(value);
  };
  const bool jumps = (told & input_told) != 0;
  const std::uint64_t input = place_.input + difference(input_told, "the input of a document");
  if (input >= input_count) {
    throw format_error(offset, "a document comes from an input beyond the " +
                                   std::to_string(input_count) + " that are named");
  }
  const std::uint64_t line = static_cast<std::uint64_t>(place_.line) + (jumps ? 0 : 1);
  place_.line = static_cast<std::int64_t>(line + difference(line_told, "the line of a document"));
  const std::uint64_t begin = difference(begin_told, "the first byte of a document");
  place_.begin = (jumps ? place_.begin : place_.end + gap_) + begin;
  place_.input = static_cast<std::uint32_t>(input);
  if (told == begin_told) gap_ += begin;
}

inline void src_code::set_end(std::uint64_t length, std::uint64_t offset) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  if (place_.begin > most || length > most - place_.begin) {
    throw format_error(offset, "a document of " + std::to_string(length) +
                                   " bytes begins at byte " + std::to_string(place_.begin) +
                                   ", so it ends after 2^63 - 1");
  }
  place_.end = place_.begin + length;
}

}  // namespace millrace::formats
