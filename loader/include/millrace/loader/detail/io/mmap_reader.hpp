// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/io/io_threads.hpp>
#include <millrace/loader/detail/io/map_advisor.hpp>
#include <millrace/loader/detail/io/open_files.hpp>
#include <millrace/loader/detail/io/pread_reader.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/io/reader_options.hpp>
#include <millrace/loader/detail/io/sigbus_guard.hpp>

namespace millrace::loader {

/// Copies from memory-mapped files in file order. While one range is copied, the processor
/// prefetches the next range. This is the fastest way to read bytes that are in memory.
///
/// `map_advisor` chooses the advice (madvise) for each file. `prefetch` calls
/// madvise(MADV_WILLNEED). Files that cannot be mapped are read with pread. If copying a range
/// raises SIGBUS, pread reads this range again, and either succeeds or reports the cause.
///
/// If a file is truncated within a page, the rest of that page becomes zeros without a signal. So
/// if a copied range ends with a zero byte, the reader checks the file's size. The kernel changes
/// the size before it zeroes the page, so the check detects the truncation. A range whose last byte
/// is not zero is intact.
class MILLRACE_EXPORT mmap_reader final : public range_reader {
 public:
  /// Does not open the files.
  explicit mmap_reader(std::vector<data_file> files, reader_options options = {});

  void prefetch(std::span<const file_range> ranges) noexcept override;
  void gather(std::span<const read_request> requests) override;
  reader_report report() const override;

 private:
  static constexpr std::uint64_t shared_from = std::uint64_t{1} << 20;

  /// Working memory of one thread of a gather.
  struct worker {
    std::vector<copy_piece> pieces;
    std::vector<std::uint32_t> requests;  // index of each piece's request
    std::vector<read_request> unread;     // requests to read with pread
  };

  open_files::file& file_of(std::int64_t i) const { return *files_[static_cast<std::size_t>(i)]; }
  open_files::map_result map_for(std::int64_t file, std::uint64_t offset);
  void copy(std::span<const read_request> requests, std::span<const std::uint32_t> order,
            worker& with);
  void copy_from(const open_files::map& map, std::int64_t file, worker& with);
  void check_size(const open_files::map& map, std::int64_t file, const worker& with) const;
  static read_request request_of(const copy_piece& piece, const open_files::map& map,
                                 std::int64_t file) noexcept;

  reader_options options_;
  std::shared_ptr<open_files> table_;
  std::shared_ptr<io_threads> threads_;
  std::vector<std::shared_ptr<open_files::file>> files_;
  map_advisor advisor_;
  pread_reader unmapped_;  // reads files that cannot be mapped, and ranges after SIGBUS
  std::vector<std::uint32_t> order_;
  std::vector<std::size_t> begins_;  // index in `order_` at which each task begins
  std::vector<worker> workers_;
  std::vector<file_range> ahead_;
  std::vector<file_range> ahead_unmapped_;
};

}  // namespace millrace::loader
