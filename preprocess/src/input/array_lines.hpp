// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "input/byte_source.hpp"

namespace millrace::preprocess {

/// Converts a text that is one JSON array to JSON lines, without changing its size in bytes. Each
/// separator between two elements becomes a line end, so line N holds element N, and byte offsets
/// stay the same. Any other text passes through unchanged.
///
/// - The array's own brackets become spaces; the commas between its elements become '\n'.
/// - Other line ends become spaces, so that each element stays on one line.
/// - A line end inside a string is invalid JSON. It becomes the byte 1, which is also invalid, so
///   the element remains one bad record.
///
/// is_array() decides whether the text is an array. This class counts brackets without checking
/// that they match, and does not validate the elements; the parser of the elements does both.
/// read() throws `format_error`, with the byte offset, only for an error in the array itself: a
/// comma without an element before it, a comma before the closing bracket, text after the array, or
/// a missing closing bracket.
class array_lines final : public byte_source {
 public:
  /// is_array() skips at most this many bytes of white space to find a '['.
  static constexpr std::size_t most_space_bytes = std::size_t{1} << 20;

  /// @param name  name of the file, for errors
  array_lines(std::unique_ptr<byte_source> inner, std::filesystem::path name);

  std::size_t read(std::span<std::byte> out) override;
  std::uint64_t position_bytes() const noexcept override { return inner_->position_bytes(); }
  void cancel() noexcept override { inner_->cancel(); }

  /// Returns whether the text is an array. Reads only as many bytes as this needs. Later calls of
  /// read() still return these bytes.
  ///
  /// @throws  as the inner source's read()
  bool is_array();

 private:
  enum class state : std::uint8_t { unknown, as_it_is, before, outside, string, escape, behind };

  std::size_t read_inner(std::span<std::byte> out);
  std::size_t convert(std::span<std::byte> bytes);
  char* convert_outside(char* at, char* end);
  char* convert_string(char* at, char* end);
  char* open_array(char* at, char* end);
  char* pass_behind(char* at, char* end);
  bool convert_mark(char& mark);
  bool separate(char& mark);
  void fail(const char* problem);

  std::unique_ptr<byte_source> inner_;
  std::filesystem::path name_;
  std::vector<std::byte> head_;  // read by is_array(), not yet returned
  std::size_t head_given_ = 0;
  state state_ = state::unknown;
  std::uint64_t depth_ = 0;   // number of open brackets, including the array's own
  bool has_element_ = false;  // an element began after the last separator
  bool comma_ = false;        // a comma between elements was found
  std::uint64_t given_ = 0;   // number of bytes returned by read()
  const char* problem_ = nullptr;
};

}  // namespace millrace::preprocess
