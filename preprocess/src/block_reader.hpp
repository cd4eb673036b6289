// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "byte_buffer.hpp"
#include "byte_source.hpp"
#include "input_plan.hpp"
#include "record_parser.hpp"

namespace millrace::preprocess {

/// A piece of one input that starts at the start of a line and ends at the end of one.
struct byte_block {
  std::size_t input = 0;           ///< index of the file in the plan
  std::uint64_t offset_bytes = 0;  ///< of the first byte, in the decompressed input
  byte_buffer buffer;              ///< record_parser::padding_bytes more than `size_bytes`
  std::size_t size_bytes = 0;
  std::uint64_t read_bytes = 0;  ///< bytes on disk read so far, over all inputs

  std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(buffer.data()), size_bytes};
  }
};

/// Cuts the inputs, one after another, into blocks at line ends: `\n`, `\r\n`, or `\r` alone, as
/// Python's text files have it. A byte order mark at the start of a file is left out.
///
/// A block has about `block_bytes`; a longer line makes a block of its own that is as long as it
/// needs to be. Where the cuts fall changes nothing but memory and speed. For one thread.
class block_reader {
 public:
  block_reader(std::span<const input_file> inputs, std::size_t block_bytes);

  /// Reads the next block into `block`, whose buffer is reused.
  ///
  /// @return false at the end of the last input.
  /// @throws io_error, format_error  as byte_source::read, after the whole lines before that.
  bool next(byte_block& block);

 private:
  void open_next();
  void fill(byte_block& block);
  std::size_t append(byte_block& block, std::size_t used, std::size_t target);

  std::span<const input_file> inputs_;
  std::size_t block_bytes_;
  std::size_t input_ = 0;  // the one that source_ reads
  std::unique_ptr<byte_source> source_;
  std::exception_ptr failure_;   // of source_, thrown once the lines before it are given
  bool ended_ = false;           // source_ gave its last byte
  std::uint64_t offset_ = 0;     // of the first byte of rest_
  std::vector<std::byte> rest_;  // read, but behind the last cut
  std::uint64_t finished_ = 0;   // bytes on disk of inputs before this one
};

}  // namespace millrace::preprocess
