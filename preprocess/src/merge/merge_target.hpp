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

/// One file of the whole, which several processes write to, each at places of its own.
struct target_file {
  io::unique_fd fd;
  std::filesystem::path path;         ///< the partial one
  std::uint64_t checksums_at = 0;     ///< of block 0, in P.sum
  std::vector<block_piece> pieces{};  ///< of blocks that were written here only in part
};

/// The partial files of a whole, as one of its writers has them. For one thread; another process
/// made them, or this one, in their full sizes: see merged_dataset.
class merge_target {
 public:
  /// @param checksums  there is a P.sum
  /// @throws io_error  a partial file is not there, or refuses.
  merge_target(const dataset_paths& paths, const merged_layout& layout, bool checksums);

  const merged_layout& layout() const noexcept { return layout_; }
  bool has_checksums() const noexcept { return static_cast<bool>(sum_); }
  target_file& bin() noexcept { return bin_; }
  target_file& idx() noexcept { return idx_; }

  /// What of the .idx is no part's: its header, and the 0 before document 0. For one writer.
  void write_frame();

  /// Writes checksums of blocks to P.sum.
  /// @pre has_checksums()
  void put(const target_file& of, std::span<const block_checksum> blocks);

  /// The same of blocks that were written in pieces: call it on one writer, when all have written.
  ///
  /// @param bin, idx  the pieces of all writers, this one's included
  /// @throws format_error  something was not written, or twice.
  void put_joined(std::vector<block_piece> bin, std::vector<block_piece> idx);

  /// Makes durable what was written through this object.
  /// @throws io_error  the kernel could not.
  /// @throws stopped   `stop` is set.
  void sync(const stop_flag& stop);

 private:
  merged_layout layout_;
  target_file bin_;
  target_file idx_;
  io::unique_fd sum_;
  std::filesystem::path sum_path_;
};

/// Writes one run of bytes of a file, front to back, and sees to its checksums.
class placed_writer {
 public:
  /// @param target, file  the second is of the first; both outlive this
  placed_writer(merge_target& target, target_file& file, std::uint64_t offset)
      : target_(target), file_(file), offset_(offset), checksums_(offset) {}

  void append(std::span<const std::byte> bytes);

  /// Appends bytes [from_offset, from_offset + size) of another file: in the kernel, as far as that
  /// can.
  ///
  /// @param bytes  the same, where there are checksums
  /// @param pages  of the other file
  /// @throws format_error  the other file ends before that.
  void append_copy(const io::unique_fd& from, const std::filesystem::path& from_path,
                   std::uint64_t from_offset, std::uint64_t size, std::span<const std::byte> bytes,
                   io::page_cache pages);

  /// Call it when all bytes have come.
  void finish() { checksums_.finish(file_.pieces); }

 private:
  void add_checksums(std::span<const std::byte> bytes);

  merge_target& target_;
  target_file& file_;
  std::uint64_t offset_;
  range_checksums checksums_;
  std::vector<block_checksum> completed_;  // reused
};

}  // namespace millrace::preprocess
