// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <millrace/io/detail/page_cache.hpp>
#include <millrace/io/detail/unique_fd.hpp>

#include "input/byte_source.hpp"
#include "input/input_plan.hpp"
#include "input/restart_points.hpp"
#include "input/table_input.hpp"

namespace millrace::preprocess {

/// An input that can be read from the middle: an uncompressed file, a table (a Parquet file), or an
/// *archive*. Here, an archive is a compressed file whose parts (gzip members or zstd frames) can
/// be decompressed independently. Offsets in a table count rows, others bytes. Thread-safe.
class seekable_input {
 public:
  /// @return null for an input that must be read from its start. This is a pipe, a JSON array, a
  ///         compressed file that is not an archive, or an archive with a part of more than
  ///         `largest_part_bytes` of text.
  /// @throws io_error      the file cannot be opened.
  /// @throws format_error  the size of an archive has changed since the inputs were planned.
  static std::shared_ptr<const seekable_input> open(const input_file& file,
                                                    std::uint64_t largest_part_bytes);

  const input_file& file() const noexcept { return file_; }
  /// The descriptor of an uncompressed file; null for an archive.
  const std::shared_ptr<const io::unique_fd>& fd() const noexcept { return fd_; }

  /// Not null if the input is a table.
  const std::shared_ptr<const table_input>& table() const noexcept { return table_; }

  /// Size of the decompressed text, or number of rows.
  std::uint64_t size() const noexcept { return size_; }

  /// Finds the places that are at least `least` bytes after `begin` and at which reading can start.
  /// Returns the first of these places, or the end of the text if there is none.
  ///
  /// @pre begin < size(); this is not a table, which row_spans cuts
  std::uint64_t span_end(std::uint64_t begin, std::uint64_t least) const;

  /// Finds the places whose offset on disk is at most `compressed_bytes` and at which reading can
  /// start. Returns the offset of the last of these places.
  std::uint64_t offset_before(std::uint64_t compressed_bytes) const;

  /// Approximate offset on disk of a place.
  std::uint64_t compressed_bytes(std::uint64_t offset) const;

  /// Opens the text at `begin`, which may be any byte or row of it.
  std::unique_ptr<byte_source> open_at(std::uint64_t begin) const;

 private:
  explicit seekable_input(const input_file& file) : file_(file) {}
  std::size_t point_before(std::uint64_t offset) const;

  input_file file_;
  std::shared_ptr<const io::unique_fd> fd_;
  io::page_cache pages_ = io::page_cache::keep;
  std::vector<restart_point> points_;  // restart points of an archive; the last is its end
  std::shared_ptr<const table_input> table_;
  std::uint64_t size_ = 0;
};

}  // namespace millrace::preprocess
