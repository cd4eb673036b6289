// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/io/io_threads.hpp>
#include <millrace/loader/detail/io/open_files.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/io/read_plan.hpp>
#include <millrace/loader/detail/io/reader_log.hpp>
#include <millrace/loader/detail/io/reader_options.hpp>
#include <millrace/loader/detail/io/reader_report.hpp>

namespace millrace::loader {

/// Reads with preadv2(2).
///
/// In a gather of less than 1 MiB, the calling thread first reads what is in the page cache
/// (RWF_NOWAIT), because waking another thread takes longer. The rest is divided among threads, so
/// that the calls run in parallel. If the file system does not support RWF_NOWAIT, or in a gather
/// of 1 MiB or more, all reads are divided among threads. `prefetch` calls
/// posix_fadvise(POSIX_FADV_WILLNEED).
///
/// This is the best reader if memory mappings are refused or page faults are expensive, for example
/// on parallel file systems.
class MILLRACE_EXPORT pread_reader final : public range_reader {
 public:
  /// Does not open the files.
  explicit pread_reader(const std::vector<data_file>& files, reader_options options = {});

  void prefetch(std::span<const file_range> ranges) noexcept override;
  void gather(std::span<const read_request> requests) override;
  reader_report report() const override;

  /// Throws the `io_error` for a file that ends too early, at byte `end`.
  [[noreturn]] static void throw_short(const open_files::file& f, std::uint64_t end);

 private:
  static constexpr std::uint64_t shared_from = std::uint64_t{1} << 20;

  /// The file that a thread reads from. It stays open between the thread's reads.
  struct current_file {
    open_files::file* file = nullptr;
    open_files::held_descriptor held;
  };

  open_files::file& file_of(std::int64_t i) const { return *files_[static_cast<std::size_t>(i)]; }
  const open_files::held_descriptor& hold(current_file& current, open_files::file& f);
  bool read(planned_read& rest, std::span<::iovec> parts, bool only_cached, current_file& current);
  void read_all(std::span<planned_read> reads);
  static std::span<::iovec> advance(planned_read& rest, std::span<::iovec> parts, std::uint64_t n);

  reader_options options_;
  std::shared_ptr<open_files> table_;
  std::shared_ptr<io_threads> threads_;
  std::vector<std::shared_ptr<open_files::file>> files_;
  reader_log log_;
  read_plan plan_;
  std::vector<planned_read> cold_;
  std::vector<file_range> ahead_;
  std::atomic<bool> only_cached_works_{true};
};

}  // namespace millrace::loader
