// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// Resources of `uring_reader`. By default, the slots take 7.9 MiB of locked memory. Unprivileged
/// users may lock 8 MiB by default.
struct uring_options {
  int depth = 64;   ///< reads in flight, 8 to 4,096
  int slots = 224;  ///< buffers for reads in flight and for data not yet gathered; at least 32
  std::size_t slot_bytes = std::size_t{36} * 1024;  ///< size of a slot, a multiple of 4,096
  int most_files = 128;  ///< maximum number of files open for direct reads

  /// For tests: called after each read with its result and its bytes. The reader uses the returned
  /// value as the result of the read.
  std::function<std::int64_t(std::int64_t, std::span<std::byte>)> alter_result = {};
};

namespace detail {

/// Returns the options unchanged.
/// @throws config_error  an option is out of range
MILLRACE_EXPORT uring_options checked(uring_options options);

}  // namespace detail
}  // namespace millrace::loader
