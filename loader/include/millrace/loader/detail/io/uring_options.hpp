// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// Resources of `uring_reader`. The default is 7.9 MiB of memory: under the 8 MiB that unprivileged
/// users may lock by default.
struct uring_options {
  int depth = 64;   ///< reads in flight, 8 to 4,096
  int slots = 224;  ///< slots for reads in flight and reads not yet gathered; at least 2 * 16
  std::size_t slot_bytes = std::size_t{36} * 1024;  ///< size of a slot, a multiple of 4,096
  int most_files = 128;                             ///< files open for direct reads

  /// For tests: receives the result of each read and its bytes, and returns the result to use
  /// instead.
  std::function<std::int64_t(std::int64_t, std::span<std::byte>)> alter_result = {};
};

namespace detail {

/// Returns the options unchanged.
/// @throws config_error  one is out of range
MILLRACE_EXPORT uring_options checked(uring_options options);

}  // namespace detail
}  // namespace millrace::loader
