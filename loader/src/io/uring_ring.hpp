// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <liburing.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/io/file_mapping.hpp>

/// Only available with liburing (MILLRACE_HAS_URING).
namespace millrace::loader {

/// One io_uring ring, the memory that its reads go to, and its file table.
///
/// Only one thread may use the ring at a time. If `single` was requested and the kernel supports it
/// (Linux 6.1 or later), only the thread that created the ring may use it. The flags
/// IORING_SETUP_SINGLE_ISSUER and IORING_SETUP_DEFER_TASKRUN are then set, so the kernel processes
/// completions only when that thread asks for results. Any thread may destroy the ring. The kernel
/// then finishes the reads in flight, and keeps their memory until they are done.
class MILLRACE_EXPORT uring_ring {
 public:
  /// The kernel's answers to three requests. Each is 0, or the errno of the refusal.
  struct grants {
    int single_issuer = 0;
    int buffers = 0;
    int files = 0;
  };

  /// If the kernel refuses to create a ring, `valid()` is false and `error()` returns the errno.
  /// @param single  true if one thread uses the ring for its whole life
  uring_ring(unsigned entries, std::size_t memory_bytes, unsigned files, bool single);

  bool valid() const noexcept { return ring_ != nullptr; }
  int error() const noexcept { return error_; }
  const grants& granted() const noexcept { return granted_; }
  /// True if the calling thread may use the ring.
  bool is_mine() const noexcept { return !single_ || owner_ == std::this_thread::get_id(); }

  /// The memory of the ring. It is page-aligned, and registered with the kernel if the kernel
  /// granted that.
  std::byte* memory() const noexcept { return static_cast<std::byte*>(memory_.get().address); }

  /// Puts a descriptor into the file table. If the kernel refuses, reads of this place use the
  /// descriptor itself.
  void put_file(unsigned place, int fd) noexcept {
    if (granted_.files != 0) return;
    in_table_[place] = ::io_uring_register_files_update(ring_.get(), place, &fd, 1) == 1;
  }

  /// Queues a read for the next `submit`. Returns false if the queue is full: submit first.
  ///
  /// @param fd     descriptor of the file; used only if the file is not in the file table
  /// @param place  place of the file in the file table; used only if the file is there
  bool read(int fd, unsigned place, std::byte* to, std::uint32_t bytes, std::uint64_t offset,
            std::uint64_t token) noexcept;

  /// Submits all queued reads and waits for `wait_for` results.
  /// @return 0 or an errno. After an error, some reads may still be queued; they still refer to
  /// their files by place or descriptor.
  int submit(unsigned wait_for) noexcept;
  /// Number of reads that are queued but not submitted.
  unsigned unsubmitted() const noexcept { return ::io_uring_sq_ready(ring_.get()); }
  /// Waits for the result of a submitted read, without submitting further reads. Returns 0 or an
  /// errno.
  int wait() noexcept {
    ::io_uring_cqe* first = nullptr;
    return -::io_uring_wait_cqe(ring_.get(), &first);
  }

  /// Calls `done(token, result)` for each read that has completed. The result is that of read(2),
  /// or -errno.
  /// @return the number of results
  template <class Done>
  unsigned take_results(const Done& done);

 private:
  struct exit {
    void operator()(::io_uring* ring) const noexcept {
      ::io_uring_queue_exit(ring);
      delete ring;  // NOLINT: as std::default_delete
    }
  };

  int make(unsigned entries, unsigned flags);

  io::detail::unique_region memory_;  // declared first, so that it is freed after the ring
  std::unique_ptr<::io_uring, exit> ring_;
  std::thread::id owner_ = std::this_thread::get_id();
  bool single_ = false;
  int error_ = 0;
  grants granted_;
  std::vector<bool> in_table_;  // indexed by place
};

// ---------------------------------------------------------------------------------------------

template <class Done>
unsigned uring_ring::take_results(const Done& done) {
  // Removes the results from the queue before calling `done`, because `done` may queue new reads
  // and may throw.
  constexpr unsigned most = 64;
  ::io_uring_cqe* ended[most];  // NOLINT: the type that the library takes
  struct result {
    std::uint64_t token;
    std::int32_t bytes;
  };
  unsigned all = 0;
  for (;;) {
    result results[most];  // NOLINT: uninitialized beyond `n`
    const unsigned n = ::io_uring_peek_batch_cqe(ring_.get(), ended, most);
    if (n == 0) return all;
    for (unsigned i = 0; i < n; ++i) results[i] = {ended[i]->user_data, ended[i]->res};
    ::io_uring_cq_advance(ring_.get(), n);
    for (unsigned i = 0; i < n; ++i) done(results[i].token, results[i].bytes);
    all += n;
  }
}

}  // namespace millrace::loader
