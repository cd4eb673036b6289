// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <vector>

#include "input/byte_block.hpp"
#include "input/byte_source.hpp"
#include "input/table_input.hpp"

namespace millrace::preprocess {

/// Reads one input sequentially and cuts it into blocks at line ends. Not thread-safe.
class sequential_reader {
 public:
  /// @param path    path of the input, for messages
  /// @param offset  offset in the decompressed input at which to begin; a line begins there
  /// @param begun   bytes already read from `source`, starting at `offset`
  sequential_reader(std::filesystem::path path, std::unique_ptr<byte_source> source,
                    std::uint64_t offset, const read_limits& limits,
                    std::vector<std::byte> begun = {});

  /// Reads the next block into `block`, whose buffer is reused.
  ///
  /// @return false at the end of the input.
  /// @throws io_error, format_error  as byte_source::read, after all whole lines before the error
  ///                                 were delivered.
  /// @throws line_abandoned          the run was asked to stop during a giant line.
  bool next(byte_block& block);

  /// Bytes on disk read so far.
  std::uint64_t position_bytes() const noexcept { return source_->position_bytes(); }

 private:
  std::size_t append(byte_block& block, std::size_t used, std::size_t target);
  void finish(byte_block& block, std::size_t used, std::size_t cut);
  void follow_giant(byte_block& block, std::size_t used);

  std::filesystem::path path_;
  std::unique_ptr<byte_source> source_;
  read_limits limits_;
  std::exception_ptr failure_;   // error of source_; next() throws it after it has delivered the
                                 // lines before the error
  bool ended_ = false;           // source_ has reached its end
  std::uint64_t offset_;         // offset of the first byte of rest_ in the text
  std::vector<std::byte> rest_;  // bytes that were already read but belong to the next block
};

/// Reads the rows from `rows.row()` to `end` into a block, or the first of them if they have more
/// text than a block should have. Then call read_more_rows().
///
/// @throws io_error, format_error  as row_text::read
void read_rows(byte_block& block, const read_limits& limits, row_text& rows, std::uint64_t end);

/// Reads the next rows into a block, in place of those before.
///
/// @param rows  that read those before
/// @return false if there are no more rows
/// @throws io_error, format_error  as row_text::read
bool read_more_rows(byte_block& block, const read_limits& limits, row_text& rows);

/// If `block` carries a span, reads the text of that span into the block; of rows, as read_rows().
/// Any thread may call this.
///
/// @param rows  reads spans of tables; pass the same one for many blocks to reuse its memory
/// @throws io_error, format_error  as byte_source::read. Also format_error if the file became
///                                 shorter or longer after the inputs were planned.
/// @throws line_abandoned          the run was asked to stop during a giant line.
void read_span(byte_block& block, const read_limits& limits, row_text& rows);

}  // namespace millrace::preprocess
