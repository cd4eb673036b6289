// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// Whether the process can use io_uring, and why.
struct uring_probe {
  bool usable = false;
  std::string why;  ///< never empty
};

/// Creates a ring and destroys it again, which takes 0.1 ms. This test is necessary because a
/// container's system call filter may forbid io_uring, whatever the versions of kernel and library.
MILLRACE_EXPORT uring_probe probe_uring();

/// The text that `--version` prints: "liburing" or "without liburing".
MILLRACE_EXPORT std::string optional_parts();

/// Explains an errno of io_uring_setup to a user.
MILLRACE_EXPORT std::string why_no_ring(int code);

}  // namespace millrace::loader
