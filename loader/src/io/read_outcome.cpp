// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/read_outcome.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace millrace::loader {

MILLRACE_INLINE read_outcome take_result(read_progress& progress, std::int64_t result) noexcept {
  constexpr int most_repeats = 8;
  const auto repeat = [&] {
    return ++progress.repeated <= most_repeats ? read_outcome::repeat : read_outcome::hand_over;
  };
  if (result > 0) {
    const std::uint64_t end = progress.done + static_cast<std::uint64_t>(result);
    if (end >= progress.need) {
      progress.done = end;
      return read_outcome::complete;
    }
    if (end % progress.alignment != 0) return read_outcome::hand_over;
    const std::uint64_t both = std::max(progress.alignment, progress.memory_alignment);
    const std::uint64_t aligned = end / both * both;
    if (aligned == progress.done) return repeat();
    progress.done = aligned;
    progress.repeated = 0;
    return read_outcome::resume;
  }
  switch (-result) {
    case EINTR:
    case EAGAIN:
      return repeat();
    case EINVAL:
    case EOPNOTSUPP:
    case ENOSYS:
      return read_outcome::demote;
    default:  // includes 0, which means that there are no more bytes
      return read_outcome::hand_over;
  }
}

}  // namespace millrace::loader
