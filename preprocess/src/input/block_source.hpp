// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "input/block_readers.hpp"
#include "input/byte_block.hpp"
#include "input/input_plan.hpp"
#include "input/seekable_input.hpp"
#include "input/table_input.hpp"

namespace millrace::preprocess {

/// A place in the decompressed text of the inputs, or a row of a table.
struct text_place {
  std::size_t input = 0;
  std::uint64_t offset = 0;
  bool operator==(const text_place&) const = default;
};

/// The part of the inputs that a run reads.
struct read_range {
  text_place begin = {};
  text_place count_from = {};  ///< where `byte_block::read_bytes` starts to count; <= `begin`
  text_place end = {};         ///< {number of inputs, 0} means the end of the last input
  /// If true, a line begins at `begin` and belongs to this range. If false, the line that contains
  /// `begin` belongs to the range before this one. A row always belongs to the range that it
  /// begins.
  bool at_line = true;
  std::uint32_t crc32c = 0;  ///< if `at_line`: checksum of the input's text before `begin`
};

/// Delivers the inputs, in order, as blocks. For a seekable input, a block contains a span (a byte
/// range) that a worker reads later. For any other input, a block contains the text itself. The
/// places at which inputs are cut into blocks affect only memory and speed. Only cancel() is
/// thread-safe.
class block_source {
 public:
  /// @param inputs  must outlive this object
  block_source(std::span<const input_file> inputs, const read_range& range,
               const read_limits& limits);

  /// Fills in the next block.
  ///
  /// @return false at the end of the range.
  /// @throws io_error, format_error  as byte_source::read, after all whole lines before the error
  ///                                 were delivered. Also format_error if the file is shorter or
  ///                                 longer than when the inputs were planned.
  /// @throws config_error            the text before `begin` differs from the text that the earlier
  ///                                 run read. Checked only for inputs that are read from their
  ///                                 start, such as pipes and some compressed files.
  /// @throws line_abandoned          the run was asked to stop during a giant line.
  bool next(byte_block& block);

  /// If next() is waiting for a pipe, makes it return soon. Any thread may call this. After this
  /// call, the caller must ignore what next() returns or throws.
  void cancel() noexcept;

 private:
  void open(std::size_t input);
  void set_reading(byte_source* source);
  std::vector<std::byte> pass_over(byte_source& source, std::uint64_t bytes) const;
  bool next_span(byte_block& block);
  bool next_rows(byte_block& block);
  std::uint64_t end_of(std::size_t input) const;

  std::span<const input_file> inputs_;
  read_range range_;
  read_limits limits_;
  std::size_t input_;
  std::shared_ptr<const seekable_input> seekable_;  // not open while `sequential_` is
  std::optional<row_spans> spans_;                  // of a table
  std::optional<row_text> rows_;                    // of a table, where it is read in sequence,
  std::uint64_t rows_end_ = 0;                      // up to this row
  std::optional<sequential_reader> sequential_;
  std::uint64_t offset_ = 0;          // offset at which the next span starts
  bool at_line_ = true;               // a line begins at `offset_` and belongs to the next span
  std::uint64_t finished_bytes_ = 0;  // bytes on disk of the inputs before `input_`
  std::uint64_t skipped_bytes_ = 0;   // bytes on disk before this task's part of its first input

  std::mutex mutex_;                // guards the next two members
  byte_source* reading_ = nullptr;  // the source that next() may wait for
  bool cancelled_ = false;
};

}  // namespace millrace::preprocess
