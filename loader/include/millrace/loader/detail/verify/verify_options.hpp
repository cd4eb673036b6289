// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <millrace/detail/export.hpp>
#include <millrace/error.hpp>

namespace millrace::loader {

/// When the loader compares blocks of data files with their checksums.
enum class verify_mode : std::uint8_t {
  off,  ///< never
  /// A block that is in memory when it is first needed is checked before it is served. All other
  /// blocks are left to the scrubber (background checks). Checking them immediately would cost a
  /// read of 1 MiB for a sample of 8 KiB.
  first_touch,
  background,  ///< the scrubber checks all blocks at its own rate
};

/// What to do about a block that does not match its checksum.
enum class bad_block_policy : std::uint8_t {
  /// End the run with a `format_error` at the sample that needs the block. If the fault is found
  /// after the block was served, end the run at the next sample.
  fail,
  /// Serve the sample with the faulty bytes, and add the finding to the report. The order of
  /// samples does not change.
  report,
};

/// The name of a mode: "off", "first_touch", "background".
inline const char* name_of(verify_mode mode) noexcept {
  constexpr const char* names[] = {"off", "first_touch", "background"};
  return names[static_cast<int>(mode)];
}

struct verify_options {
  verify_mode mode = verify_mode::first_touch;
  bad_block_policy bad_blocks = bad_block_policy::fail;

  /// Token ids must be 0 to vocab_size - 1. 0: ids are not checked. An id outside this range ends
  /// the run under either policy.
  std::int64_t vocab_size = 0;

  /// Limit on the scrubber's reads, in bytes per second. All loaders of a process share one
  /// scrubber, which obeys the smallest limit. 0: no scrubber.
  std::uint64_t scrub_bytes_per_second = std::uint64_t{64} << 20;

  /// The part of the blocks that this scrubber checks: 0 <= part < parts. Use this to divide the
  /// work among several processes of a machine, or among machines that share a file system.
  std::int64_t scrub_part = 0;
  std::int64_t scrub_parts = 1;

  /// A function that returns true if most of a range of a file is in memory. Empty: ask the kernel,
  /// which answers only if the process owns the file or may write to it (io/residency.hpp). If the
  /// kernel does not answer, all blocks are left to the scrubber.
  std::function<bool(int fd, std::uint64_t offset, std::uint64_t size_bytes)> in_memory = {};
};

/// Returns `options` unchanged.
/// @throws config_error  an option is out of range; the message names it
MILLRACE_EXPORT const verify_options& check(const verify_options& options);

/// @throws config_error  `text` is not the name of a mode
inline verify_mode parse_verify_mode(const std::string& text) {
  for (const auto mode : {verify_mode::off, verify_mode::first_touch, verify_mode::background}) {
    if (text == name_of(mode)) return mode;
  }
  throw config_error("verify is '" + text + "', expected off, first_touch or background");
}

}  // namespace millrace::loader
