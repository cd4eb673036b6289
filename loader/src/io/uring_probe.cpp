// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/uring_probe.hpp>

#include <cerrno>
#include <memory>
#include <string>
#include <system_error>

#if defined(MILLRACE_HAS_URING)
#include <liburing.h>
#endif

namespace millrace::loader {

MILLRACE_INLINE std::string optional_parts() {
#if defined(MILLRACE_HAS_URING)
  return "liburing";
#else
  return "without liburing";
#endif
}

MILLRACE_INLINE std::string why_no_ring(int code) {
  std::string said = "io_uring_setup: " + std::generic_category().message(code);
  switch (code) {
    case EPERM:
    case EACCES:
      return said +
             " (a container's filter of system calls or the sysctl "
             "kernel.io_uring_disabled forbids it)";
    case ENOSYS:
      return said + " (the kernel has none, or a container's filter hides it)";
    case ENOMEM:
      return said + " (the limit of locked memory, ulimit -l, may be too low)";
    default:
      return said;
  }
}

#if defined(MILLRACE_HAS_URING)

MILLRACE_INLINE uring_probe probe_uring() {
  ::io_uring ring{};
  const int made = ::io_uring_queue_init(4, &ring, 0);
  if (made < 0) return {false, why_no_ring(-made)};
  const auto end = [](::io_uring* r) { ::io_uring_queue_exit(r); };
  const std::unique_ptr<::io_uring, decltype(end)> ends(&ring, end);
  const auto let_go = [](::io_uring_probe* p) { ::io_uring_free_probe(p); };
  const std::unique_ptr<::io_uring_probe, decltype(let_go)> known(::io_uring_get_probe_ring(&ring),
                                                                  let_go);
  if (!known)
    return {false, "the kernel's io_uring does not report its operations (it is older than 5.6)"};
  if (::io_uring_opcode_supported(known.get(), IORING_OP_READ) == 0) {
    return {false, "the kernel's io_uring has no IORING_OP_READ (it is older than 5.6)"};
  }
  return {true, "a ring could be made"};
}

#else

MILLRACE_INLINE uring_probe probe_uring() {
  return {false, "this build of millrace has no liburing"};
}

#endif

}  // namespace millrace::loader
