// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include <millrace/io/detail/page_cache.hpp>
#include <millrace/io/detail/unique_fd.hpp>

#include "merge/block_pieces.hpp"
#include "merge/merged_layout.hpp"
#include "output/dataset_paths.hpp"
#include "process/stop_flag.hpp"

namespace millrace::preprocess {

/// One file of the merged dataset. Several processes write to the file, each to its own ranges.
struct target_file {
  io::unique_fd fd;
  std::filesystem::path path;         ///< path of the partial file
  std::uint64_t checksums_at = 0;     ///< offset of the checksum of block 0 in P.sum
  std::vector<block_piece> pieces{};  ///< blocks that this process wrote only in part
};

/// The partial files (P.bin.partial and so on) of a merged dataset, as opened by one of its
/// writers. The files must already exist with their full sizes. A merged_dataset, in this or
/// another process, creates them. Not thread-safe.
class merge_target {
 public:
  /// @param checksums  true if the dataset has a P.sum
  /// @throws io_error  a partial file does not exist or cannot be opened.
  merge_target(const dataset_paths& paths, const merged_layout& layout, bool checksums);

  const merged_layout& layout() const noexcept { return layout_; }
  bool has_checksums() const noexcept { return static_cast<bool>(sum_); }
  target_file& bin() noexcept { return bin_; }
  target_file& idx() noexcept { return idx_; }

  /// Writes the bytes of the .idx that belong to no part: the header, and the 0 at the start of the
  /// array of document ends. Exactly one writer calls this.
  void write_frame();

  /// Writes block checksums of one file to P.sum.
  ///
  /// @pre has_checksums()
  void put(const target_file& of, std::span<const block_checksum> blocks);

  /// Writes the checksums of the blocks that were written in pieces. Exactly one writer calls this,
  /// after all writers have written all their bytes.
  ///
  /// @param bin, idx  the pieces of all writers, including this one
  /// @throws format_error  some bytes were not written, or were written twice.
  void put_joined(std::vector<block_piece> bin, std::vector<block_piece> idx);

  /// Makes everything that was written through this object durable.
  ///
  /// @throws io_error  fsync failed.
  /// @throws stopped   `stop` is set.
  void sync(const stop_flag& stop);

 private:
  merged_layout layout_;
  target_file bin_;
  target_file idx_;
  io::unique_fd sum_;
  std::filesystem::path sum_path_;
};

/// Writes one contiguous range of a file sequentially, and computes its checksums.
class placed_writer {
 public:
  /// @param target, file  `file` belongs to `target`; both must outlive this object
  placed_writer(merge_target& target, target_file& file, std::uint64_t offset)
      : target_(target), file_(file), offset_(offset), checksums_(offset) {}

  void append(std::span<const std::byte> bytes);

  /// Appends the bytes [from_offset, from_offset + size) of another file. Copies them in the kernel
  /// where possible.
  ///
  /// @param bytes  the same bytes in memory; needed only if there are checksums
  /// @param pages  how to use the page cache when reading the other file
  /// @throws format_error  the other file ends before `from_offset + size`.
  void append_copy(const io::unique_fd& from, const std::filesystem::path& from_path,
                   std::uint64_t from_offset, std::uint64_t size, std::span<const std::byte> bytes,
                   io::page_cache pages);

  /// Call this after all bytes were appended.
  void finish() { checksums_.finish(file_.pieces); }

 private:
  void add_checksums(std::span<const std::byte> bytes);

  merge_target& target_;
  target_file& file_;
  std::uint64_t offset_;
  range_checksums checksums_;
  std::vector<block_checksum> completed_;  // a member only to reuse its memory
};

}  // namespace millrace::preprocess
