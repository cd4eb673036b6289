// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// Whether reads may be made by io_uring here, and what says so.
struct uring_probe {
  bool usable = false;
  std::string why;  ///< never empty
};

/// Tries it: makes a ring and ends it again, 0.1 ms. By the call itself, as neither the version of
/// the kernel nor of the library tells what a container's filter of system calls lets through.
MILLRACE_EXPORT uring_probe probe_uring();

/// For `--version`: "liburing" or "without liburing".
MILLRACE_EXPORT std::string optional_parts();

/// What an errno of io_uring_setup means to a user.
MILLRACE_EXPORT std::string why_no_ring(int code);

}  // namespace millrace::loader
