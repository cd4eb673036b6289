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

/// Only where there is liburing (MILLRACE_HAS_URING).
namespace millrace::loader {

/// One ring of io_uring, the memory that its reads go to, and its table of files.
///
/// Used by the thread that made it: the kernel is told so (SINGLE_ISSUER, DEFER_TASKRUN;
/// Linux 6.1), whereupon it does no work on behalf of the ring but when that thread asks for
/// results. Its end, on any thread, leaves reads that are under way to the kernel, which keeps
/// their memory for them.
class MILLRACE_EXPORT uring_ring {
 public:
  /// A thing that was asked of the kernel: 0, or the errno with which it said no.
  struct grants {
    int single_issuer = 0;
    int buffers = 0;
    int files = 0;
  };

  /// @param single  whether one thread uses it all its life
  /// Not valid, with `error()` an errno, where the kernel makes none.
  uring_ring(unsigned entries, std::size_t memory_bytes, unsigned files, bool single);

  bool valid() const noexcept { return ring_ != nullptr; }
  int error() const noexcept { return error_; }
  const grants& granted() const noexcept { return granted_; }
  /// Whether the calling thread may use it.
  bool is_mine() const noexcept { return !single_ || owner_ == std::this_thread::get_id(); }

  /// Page-aligned, and registered where that was granted.
  std::byte* memory() const noexcept { return static_cast<std::byte*>(memory_.get().address); }

  /// Puts a descriptor into the table of files. Where the kernel refuses that, the table goes on
  /// to hold the file that was there before, and reads of this place name the descriptor instead.
  void put_file(unsigned place, int fd) noexcept {
    if (granted_.files != 0) return;
    in_table_[place] = ::io_uring_register_files_update(ring_.get(), place, &fd, 1) == 1;
  }

  /// Notes a read for the next `submit`. False: no room for it, submit first.
  ///
  /// @param place  of the file, whose place in the table is used if it is there, else `fd` is
  bool read(int fd, unsigned place, std::byte* to, std::uint32_t bytes, std::uint64_t offset,
            std::uint64_t token) noexcept;

  /// Hands all noted reads to the kernel, and waits for that many results.
  /// @return 0 or an errno; then some may be noted still, and name files by place or descriptor
  int submit(unsigned wait_for) noexcept;
  /// Reads that are noted, and not handed to the kernel.
  unsigned unsubmitted() const noexcept { return ::io_uring_sq_ready(ring_.get()); }
  /// Waits for a result of those that the kernel has, and hands it no more. 0 or an errno.
  int wait() noexcept {
    ::io_uring_cqe* first = nullptr;
    return -::io_uring_wait_cqe(ring_.get(), &first);
  }

  /// Calls done(token, result) for each read that has ended; result as of read(2), or -errno.
  /// @return how many
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

  io::detail::unique_region memory_;  // let go of after the ring
  std::unique_ptr<::io_uring, exit> ring_;
  std::thread::id owner_ = std::this_thread::get_id();
  bool single_ = false;
  int error_ = 0;
  grants granted_;
  std::vector<bool> in_table_;  // [place]
};

// ---------------------------------------------------------------------------------------------

template <class Done>
unsigned uring_ring::take_results(const Done& done) {
  // Out of the queue first: `done` may note new reads, and throw.
  constexpr unsigned most = 64;
  ::io_uring_cqe* ended[most];  // NOLINT: what the library takes
  struct result {
    std::uint64_t token;
    std::int32_t bytes;
  };
  unsigned all = 0;
  for (;;) {
    result results[most];  // NOLINT: left empty beyond `n`
    const unsigned n = ::io_uring_peek_batch_cqe(ring_.get(), ended, most);
    if (n == 0) return all;
    for (unsigned i = 0; i < n; ++i) results[i] = {ended[i]->user_data, ended[i]->res};
    ::io_uring_cq_advance(ring_.get(), n);
    for (unsigned i = 0; i < n; ++i) done(results[i].token, results[i].bytes);
    all += n;
  }
}

}  // namespace millrace::loader
