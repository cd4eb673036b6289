// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/read_outcome.hpp>

#include <cerrno>
#include <cstdint>

namespace millrace::loader {

MILLRACE_INLINE read_outcome take_result(read_progress& progress, std::int64_t result) noexcept {
  constexpr int most_repeats = 8;
  if (result > 0) {
    progress.repeated = 0;
    progress.done += static_cast<std::uint64_t>(result);
    if (progress.done >= progress.need) return read_outcome::complete;
    if (progress.done % progress.alignment == 0) return read_outcome::resume;
    return read_outcome::hand_over;
  }
  switch (-result) {
    case EINTR:
    case EAGAIN:
      return ++progress.repeated <= most_repeats ? read_outcome::repeat : read_outcome::hand_over;
    case EINVAL:
    case EOPNOTSUPP:
    case ENOSYS:
      return read_outcome::demote;
    default:  // 0: no more bytes
      return read_outcome::hand_over;
  }
}

}  // namespace millrace::loader
