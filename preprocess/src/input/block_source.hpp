// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "input/byte_block.hpp"
#include "input/input_plan.hpp"
#include "input/seekable_input.hpp"
#include "input/sequential_reader.hpp"

namespace millrace::preprocess {

/// A place in the decompressed text of the inputs.
struct text_place {
  std::size_t input = 0;
  std::uint64_t offset_bytes = 0;
  bool operator==(const text_place&) const = default;
};

/// The part of the inputs that a run reads, and where it begins.
struct read_range {
  text_place begin = {};
  text_place count_from = {};  ///< byte_block::read_bytes counts from here; not behind `begin`
  text_place end = {};         ///< {number of inputs, 0} for all
  bool at_line =
      true;  ///< a line begins at `begin`; else the first one belongs to whoever is before
  std::uint32_t crc32c = 0;  ///< of the text of begin.input before `begin`, where `at_line`
};

/// The inputs, one after another, in blocks: of inputs that can be read from the middle, spans for
/// whoever takes them to read; of others, text. Where the cuts fall changes nothing but memory and
/// speed. For one thread.
class block_source {
 public:
  /// @param inputs  outlives this
  block_source(std::span<const input_file> inputs, const read_range& range,
               const read_limits& limits);

  /// @return false at the end.
  /// @throws io_error, format_error  as byte_source::read, after the whole lines before that; the
  /// file
  ///                                 became shorter or longer since the inputs were planned.
  /// @throws config_error            a pipe or an archive that has to be read from its front again
  ///                                 holds other text than it did before `begin`.
  /// @throws line_abandoned
  bool next(byte_block& block);

  /// From any thread: a next() that waits for a pipe ends soon. What it gives, errors included,
  /// means nothing from now on.
  void cancel() noexcept;

 private:
  void open(std::size_t input);
  void set_reading(byte_source* source);
  std::vector<std::byte> pass_over(byte_source& source, std::uint64_t bytes) const;
  bool next_span(byte_block& block);
  std::uint64_t end_of(std::size_t input) const;

  std::span<const input_file> inputs_;
  read_range range_;
  read_limits limits_;
  std::size_t input_;
  std::shared_ptr<const seekable_input> seekable_;  // one of the two is open, or none
  std::optional<sequential_reader> sequential_;
  std::uint64_t offset_ = 0;          // of the next span
  bool at_line_ = true;               // a line begins there that no span before it owns
  std::uint64_t finished_bytes_ = 0;  // on disk, of inputs before this one
  std::uint64_t skipped_bytes_ = 0;   // on disk, of the first input, which are another task's

  std::mutex mutex_;                // of the next two
  byte_source* reading_ = nullptr;  // what next() may wait for
  bool cancelled_ = false;
};

}  // namespace millrace::preprocess
