// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// Says whether io_uring can be used here, and why.
struct uring_probe {
  bool usable = false;
  std::string why;  ///< never empty
};

/// Creates a ring and destroys it again, which takes 0.1 ms. This test is necessary: neither the
/// kernel's nor the library's version shows what a container's system call filter permits.
MILLRACE_EXPORT uring_probe probe_uring();

/// For `--version`: "liburing" or "without liburing".
MILLRACE_EXPORT std::string optional_parts();

/// Explains an errno of io_uring_setup to a user.
MILLRACE_EXPORT std::string why_no_ring(int code);

}  // namespace millrace::loader
