// SPDX-License-Identifier: Apache-2.0
#include "uring_ring.hpp"

#include <liburing.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <millrace/io/file_mapping.hpp>

namespace millrace::loader {

MILLRACE_INLINE uring_ring::uring_ring(unsigned entries, std::size_t memory_bytes, unsigned files,
                                       bool single)
    : in_table_(files) {
  void* const memory =
      ::mmap(nullptr, memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    error_ = errno;
    return;
  }
  memory_ = io::detail::unique_region({memory, memory_bytes});
  error_ = EINVAL;
  if (single) {
    error_ = make(entries, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
    granted_.single_issuer = error_;
  } else {
    granted_.single_issuer = EEXIST;
  }
  single_ = single && error_ == 0;
  if (error_ != 0) error_ = make(entries, 0);
  if (error_ != 0) return;
  const ::iovec all{memory, memory_bytes};
  granted_.buffers = -::io_uring_register_buffers(ring_.get(), &all, 1);
  granted_.files = -::io_uring_register_files_sparse(ring_.get(), files);
}

MILLRACE_INLINE int uring_ring::make(unsigned entries, unsigned flags) {
  auto ring = std::make_unique<::io_uring>();
  const int made = ::io_uring_queue_init(entries, ring.get(), flags);
  if (made < 0) return -made;
  ring_.reset(ring.release());
  return 0;
}

MILLRACE_INLINE bool uring_ring::read(int fd, unsigned place, std::byte* to, std::uint32_t bytes,
                                      std::uint64_t offset, std::uint64_t token) noexcept {
  ::io_uring_sqe* const entry = ::io_uring_get_sqe(ring_.get());
  if (entry == nullptr) return false;
  const bool by_place = granted_.files == 0 && in_table_[place];
  const int file = by_place ? static_cast<int>(place) : fd;
  const auto at = static_cast<std::size_t>(to - memory());
  if (granted_.buffers == 0 && to >= memory() && at < memory_.get().size_bytes) {
    ::io_uring_prep_read_fixed(entry, file, to, bytes, offset, 0);
  } else {
    ::io_uring_prep_read(entry, file, to, bytes, offset);
  }
  if (by_place) entry->flags |= IOSQE_FIXED_FILE;
  entry->user_data = token;
  return true;
}

MILLRACE_INLINE int uring_ring::submit(unsigned wait_for) noexcept {
  for (;;) {
    const int n = wait_for == 0 ? ::io_uring_submit(ring_.get())
                                : ::io_uring_submit_and_wait(ring_.get(), wait_for);
    if (n == -EINTR) continue;
    if (n < 0) return -n;
    if (unsubmitted() == 0) return 0;
    if (n == 0) return EAGAIN;  // the kernel accepts no more reads for now
  }
}

}  // namespace millrace::loader
