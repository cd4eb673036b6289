// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/open_file_limits.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include <millrace/loader/detail/io/file_map.hpp>

namespace millrace::loader {

MILLRACE_INLINE open_file_limits filled_in(open_file_limits limits) noexcept {
  if (limits.files <= 0) {
    struct ::rlimit most {};
    const bool known = ::getrlimit(RLIMIT_NOFILE, &most) == 0;
    const auto half = known ? static_cast<std::int64_t>(most.rlim_cur / 2) : 512;
    limits.files = std::clamp<std::int64_t>(half, 4, 8192);
  }
  if (limits.maps <= 0) limits.maps = 4096;
  limits.maps = std::min(limits.maps, std::max<std::int64_t>(limits.files * 3 / 4, 1));
  if (limits.mapped_bytes == 0) {
    const auto pages = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 1L));
    limits.mapped_bytes = pages * page_bytes() * 16;
  }
  constexpr std::uint64_t unit = file_map::huge_page;
  if (limits.map_bytes == 0) limits.map_bytes = std::uint64_t{64} << 30;
  limits.map_bytes = std::max(limits.map_bytes / unit, std::uint64_t{1}) * unit;
  return limits;
}

}  // namespace millrace::loader
