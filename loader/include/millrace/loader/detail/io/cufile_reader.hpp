// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/io/cufile_library.hpp>
#include <millrace/loader/detail/io/io_options.hpp>
#include <millrace/loader/detail/io/open_files.hpp>
#include <millrace/loader/detail/io/pread_reader.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/io/reader_log.hpp>
#include <millrace/loader/detail/io/reader_options.hpp>
#include <millrace/loader/detail/io/reader_report.hpp>

namespace millrace::loader {

/// Reads large requests with NVIDIA's cuFile (GPUDirect Storage), and smaller requests with pread.
/// A request is large if it has at least `cufile_options::least_bytes` bytes, by default 1 MiB.
///
/// Intended for weights and checkpoints, whose destination can be device memory. Windows of tokens
/// (the texts of samples) are never that large. If cuFile cannot be used, or would only copy
/// through host memory, pread reads everything and the report says why. A request with a
/// destination in device memory then fails with an `io_error` (EFAULT).
class MILLRACE_EXPORT cufile_reader final : public range_reader {
 public:
  explicit cufile_reader(const std::vector<data_file>& files, reader_options options = {},
                         cufile_options how = {})
      : options_(std::move(options)),
        how_(std::move(how)),
        table_(options_.files ? options_.files : open_files::of_process()),
        plain_(files, options_),
        library_(cufile::of_process(how_.names)),
        uses_it_(library_->usable() && (library_->direct() || how_.compatibility_mode)) {
    files_.reserve(files.size());
    for (const data_file& file : files) files_.push_back(table_->attach(file));
  }

  /// Prefetches only the ranges that pread will read, because cuFile has no prefetch call.
  void prefetch(std::span<const file_range> ranges) noexcept override;
  void gather(std::span<const read_request> requests) override;
  reader_report report() const override;

 private:
  static constexpr std::size_t most_handles = 64;

  /// A file that is registered with cuFile. The file is deregistered before it is closed.
  struct registered {
    std::int64_t file = 0;
    io::unique_fd fd;
    open_files::lent counts;
    std::shared_ptr<void> handle;
  };

  bool is_large(std::uint64_t bytes) const noexcept {
    return uses_it_ && bytes >= how_.least_bytes;
  }
  const registered* find(std::int64_t file);
  bool read(const read_request& request);

  reader_options options_;
  cufile_options how_;
  std::shared_ptr<open_files> table_;
  std::vector<std::shared_ptr<open_files::file>> files_;
  pread_reader plain_;
  std::shared_ptr<const cufile> library_;
  bool uses_it_;
  std::list<registered> registered_;  // most recently used first
  std::vector<file_range> small_ranges_;
  std::vector<read_request> by_plain_;
  reader_log log_;
  std::atomic<std::int64_t> by_cufile_{0};
  std::atomic<std::int64_t> small_{0};
};

}  // namespace millrace::loader
