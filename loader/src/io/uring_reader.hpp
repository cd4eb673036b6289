// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/io/ahead_reads.hpp>
#include <millrace/loader/detail/io/direct_file.hpp>
#include <millrace/loader/detail/io/direct_plan.hpp>
#include <millrace/loader/detail/io/open_files.hpp>
#include <millrace/loader/detail/io/pread_reader.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/io/read_outcome.hpp>
#include <millrace/loader/detail/io/reader_log.hpp>
#include <millrace/loader/detail/io/reader_options.hpp>
#include <millrace/loader/detail/io/reader_report.hpp>
#include <millrace/loader/detail/io/uring_options.hpp>

#include "uring_files.hpp"
#include "uring_ring.hpp"

namespace millrace::loader {

/// Reads with io_uring, bypassing the page cache (O_DIRECT). A slot is a buffer for one read. The
/// reader reads the ranges named by `prefetch` at once while slots are free, and keeps them in
/// their slots until `gather` copies them. `gather` reads all other ranges itself, concurrently.
///
/// Intended for files on a disk of this machine that are far larger than memory. Nothing is cached:
/// two epochs read the data twice, and so do two processes.
///
/// `pread_reader` reads what the ring cannot read: a file without O_DIRECT, or the rest after a
/// read that failed or ended early. So retries and error messages are the same as in other readers.
/// If no ring can be created, pread reads everything and the report says so.
///
/// Announce each range once, in the order in which the ranges will be gathered. A slot is held
/// until its range is gathered, or until as many gathers as there are slots have passed. One thread
/// makes all calls. The first call from another thread creates a new ring, and data that was read
/// ahead is lost.
class MILLRACE_EXPORT uring_reader final : public range_reader {
 public:
  /// Opens no file and creates no ring yet.
  /// @throws config_error  an option is out of range
  explicit uring_reader(const std::vector<data_file>& files, reader_options options = {},
                        uring_options ring = {});

  void prefetch(std::span<const file_range> ranges) noexcept override;
  void gather(std::span<const read_request> requests) override;
  reader_report report() const override;

 private:
  static constexpr std::size_t most_queued = 4096;
  static constexpr std::size_t kept_for_gather = 16;  // slots that are not used for reading ahead

  /// A read, from its request until its bytes are gathered. In `operations_`, the reads into slots
  /// come first; the reads straight into request memory follow.
  struct operation {
    std::int64_t file = 0;
    std::uint64_t begin = 0;
    std::byte* to = nullptr;
    read_progress progress;
    ahead_reads::place ahead;  ///< set if `extent` is `none`
    std::size_t extent = none;
  };
  struct claim {
    ahead_reads::place from;
    read_request piece;
  };
  static constexpr std::size_t none = ~std::size_t{0};
  static constexpr int most_vain_waits = 1000;  // each takes one millisecond
  /// Thrown if the kernel accepts no more reads or returns no more results.
  struct lost_ring {
    int code;
  };

  bool has_ring();
  void retire_ring() noexcept;
  void note_ring();
  static read_progress progress_of(std::uint64_t bytes, std::uint64_t need,
                                   const direct_alignment& unit) noexcept;
  bool start(std::size_t token);
  void pump();
  int wait();
  void take(std::size_t token, std::int64_t result);
  void end_ahead(operation& op, bool ok) noexcept;
  void end_demand(std::size_t token, operation& op, bool ok);
  void release(ahead_reads::place p);
  void split(std::span<const read_request> requests);
  void start_demand();
  void finish_demand();
  void take_claims();
  void abandon() noexcept;
  void give_up_ring(int code);

  reader_options options_;
  uring_options limits_;
  std::shared_ptr<open_files> table_;
  pread_reader plain_;
  reader_log log_;
  uring_files files_;

  std::unique_ptr<uring_ring> ring_;
  // Rings that were replaced or abandoned. The kernel may still write to their memory. The vector
  // always has spare capacity for `ring_`.
  std::vector<std::unique_ptr<uring_ring>> retired_;
  std::vector<operation> operations_;
  std::vector<std::size_t> free_slots_;
  std::vector<std::size_t> free_straight_;
  std::size_t in_flight_ = 0;
  std::size_t demand_in_flight_ = 0;
  int vain_waits_ = 0;
  ahead_reads ahead_;
  std::uint64_t gathers_ = 0;

  direct_plan ahead_plan_;
  direct_plan plan_;
  std::size_t next_extent_ = 0;
  std::vector<read_request> wanted_;
  std::vector<read_request> by_plain_;
  std::vector<read_request> handed_over_;
  std::vector<file_range> plain_ahead_;
  std::vector<claim> claims_;
  std::size_t claims_taken_ = 0;

  std::atomic<bool> no_ring_{false};
  std::atomic<std::size_t> most_in_flight_{0};
};

}  // namespace millrace::loader
