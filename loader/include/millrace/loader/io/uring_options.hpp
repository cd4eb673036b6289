// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <millrace/error.hpp>

namespace millrace::loader {

/// What `uring_reader` may take.
/// The default is 7.9 MiB of memory: under the 8 MiB that unprivileged users may lock by default.
struct uring_options {
  int depth = 64;   ///< reads in flight, 8 to 4,096
  int slots = 224;  ///< reads that wait to be gathered, and those in flight; at least 2 * 16
  std::size_t slot_bytes = std::size_t{36} * 1024;  ///< of a read, a multiple of 4,096
  int most_files = 128;                             ///< open for direct reads

  /// For tests: sees the result of each read and what it has read, and says what to take it for.
  std::function<std::int64_t(std::int64_t, std::span<std::byte>)> alter_result = {};
};

namespace detail {

/// The same options.
/// @throws config_error  one is out of range
inline uring_options checked(uring_options options) {
  const auto expect = [](bool is_so, const char* name, std::size_t value, const char* range) {
    if (is_so) return;
    throw config_error(std::string("io_uring: ") + name + " is " + std::to_string(value) +
                       ", expected " + range);
  };
  expect(options.depth >= 8 && options.depth <= 4096, "depth",
         static_cast<std::size_t>(options.depth), "8 to 4096");
  expect(options.slots >= 32 && options.slots <= 65536, "slots",
         static_cast<std::size_t>(options.slots), "32 to 65536");
  expect(options.slot_bytes >= 4096 && options.slot_bytes % 4096 == 0 &&
             options.slot_bytes <= (std::size_t{1} << 24),
         "slot_bytes", options.slot_bytes, "a multiple of 4096, up to 16777216");
  expect(options.most_files >= 1 && options.most_files <= 32768, "most_files",
         static_cast<std::size_t>(options.most_files), "1 to 32768");
  return options;
}

}  // namespace detail
}  // namespace millrace::loader
