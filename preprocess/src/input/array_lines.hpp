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

/// A text that is one JSON array, as JSON lines of the same length, byte for byte: what stands
/// between two elements becomes the end of a line, so line number N is element number N and every
/// offset is that of the file. Any other text is given as it is.
///
/// - The array's own brackets become spaces, the commas between its elements '\n'.
/// - Line ends elsewhere become spaces, so that each element stays on its line.
/// - A line end within a string, which is not JSON, becomes the byte 1, which is not either: the
///   element stays one bad record.
///
/// What an array is, see is_array(). Brackets are counted, not matched, and elements not judged:
/// what is wrong within one is left for its reader. What the array itself has wrong is a
/// format_error at the byte: no element between two commas, text behind its end, no end.
class array_lines final : public byte_source {
 public:
  /// White space at the front of a text that is looked through for a '['.
  static constexpr std::size_t most_space_bytes = std::size_t{1} << 20;

  /// @param name  of the file, for errors
  array_lines(std::unique_ptr<byte_source> inner, std::filesystem::path name);

  std::size_t read(std::span<std::byte> out) override;
  std::uint64_t position_bytes() const noexcept override { return inner_->position_bytes(); }
  void cancel() noexcept override { inner_->cancel(); }

  /// Whether the text is an array. Reads as far as it takes to know; read() gives that again.
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
  std::vector<std::byte> head_;  // looked at by is_array(), not yet given
  std::size_t head_given_ = 0;
  state state_ = state::unknown;
  std::uint64_t depth_ = 0;   // open brackets, the array's own is the first
  bool has_element_ = false;  // something is between the last mark and here
  bool comma_ = false;        // and the last mark is a comma
  std::uint64_t given_ = 0;   // bytes
  const char* problem_ = nullptr;
};

}  // namespace millrace::preprocess
