// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/read_plan.hpp>

#include <limits.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <millrace/loader/detail/io/range_reader.hpp>

namespace millrace::loader {

MILLRACE_INLINE void coalesce(std::span<const file_range> ranges, std::uint64_t most_gap,
                              std::vector<file_range>& out) {
  out.assign(ranges.begin(), ranges.end());
  std::erase_if(out, [](const file_range& r) { return r.bytes == 0; });
  std::ranges::sort(out, {}, [](const file_range& r) { return std::pair(r.file, r.offset); });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < out.size(); ++i) {
    file_range& last = out[kept];
    const std::uint64_t end = last.offset + last.bytes;
    if (out[i].file == last.file && (out[i].offset <= end || out[i].offset - end <= most_gap)) {
      last.bytes = std::max(end, out[i].offset + out[i].bytes) - last.offset;
    } else {
      out[++kept] = out[i];
    }
  }
  if (!out.empty()) out.resize(kept + 1);
}

}  // namespace millrace::loader
