// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <millrace/detail/export.hpp>
#include <millrace/error.hpp>

namespace millrace::loader {

/// When blocks of data files are held against their checksums.
enum class verify_mode : std::uint8_t {
  off,  ///< never
  /// A block that is in memory when it is first needed, then, before it is served; any other by the
  /// scrubber, later: a window of 8 KiB would else read 1 MiB.
  first_touch,
  background,  ///< all by the scrubber, whenever that comes to it
};

/// What is done about a block that is not as it was written.
enum class bad_block_policy : std::uint8_t {
  /// The run ends by `format_error`: at the sample that needs the block, or, where the scrubber
  /// finds one that was served, at the next sample.
  fail,
  /// The sample is served with the bytes as they are, and the finding kept for the report. The
  /// order of samples stays what it was.
  report,
};

/// "off", "first_touch", "background".
inline const char* name_of(verify_mode mode) noexcept {
  constexpr const char* names[] = {"off", "first_touch", "background"};
  return names[static_cast<int>(mode)];
}

struct verify_options {
  verify_mode mode = verify_mode::first_touch;
  bad_block_policy bad_blocks = bad_block_policy::fail;

  /// Ids are below this; 0: they are not looked at. A token outside ends the run, whatever the
  /// policy.
  std::int64_t vocab_size = 0;

  /// Of the scrubber, at most; all loaders of a process share one, and the least that one of them
  /// names holds. 0: no scrubber.
  std::uint64_t scrub_bytes_per_second = std::uint64_t{64} << 20;

  /// The scrubber takes the blocks that fall to this part, where processes of a machine, or
  /// machines with one file system, share the work: 0 <= part < parts.
  std::int64_t scrub_part = 0;
  std::int64_t scrub_parts = 1;

  /// Whether most of a range of a file is in memory. Empty: the kernel is asked, which tells those
  /// who own the file or may write it (io/residency.hpp); to others it says nothing, and all is the
  /// scrubber's.
  std::function<bool(int fd, std::uint64_t offset, std::uint64_t size_bytes)> in_memory = {};
};

/// The same options.
/// @throws config_error  one is out of range; the message names it
MILLRACE_EXPORT const verify_options& check(const verify_options& options);

/// @throws config_error  it is none
inline verify_mode parse_verify_mode(const std::string& text) {
  for (const auto mode : {verify_mode::off, verify_mode::first_touch, verify_mode::background}) {
    if (text == name_of(mode)) return mode;
  }
  throw config_error("verify is '" + text + "', expected off, first_touch or background");
}

}  // namespace millrace::loader
