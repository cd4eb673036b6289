// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>

namespace millrace::loader {

/// A range of a file that one system call reads. Its bytes go to one or more destinations (parts).
struct planned_read {
  std::int64_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::size_t first_part = 0;  ///< index of the first part in the plan's list of parts
  std::size_t parts = 0;       ///< number of parts
};

/// Sorts requests by file and offset, and merges requests that are close together. Disks and
/// servers read fastest in this way. A read also covers the gaps between its requests, of up to
/// `most_gap` bytes each; these bytes are discarded. Memory is reused between calls.
///
///   requests, sorted   |--a--|  |---b---|            |--c--|
///   reads              |==a==gap====b===|            |==c==|
class read_plan {
 public:
  static constexpr std::uint64_t most_gap = 4096;
  static constexpr std::uint64_t most_read = std::uint64_t{4} << 20;

  /// Fills `order` with the indices of all requests that are not empty, sorted by file and offset.
  static void sort(std::span<const read_request> requests, std::vector<std::uint32_t>& order) {
    order.clear();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].from.bytes > 0) order.push_back(static_cast<std::uint32_t>(i));
    }
    const auto key = [&](std::uint32_t i) {
      return std::pair(requests[i].from.file, requests[i].from.offset);
    };
    if (!std::ranges::is_sorted(order, {}, key)) std::ranges::sort(order, {}, key);
  }

  void make(std::span<const read_request> requests) {
    sort(requests, order_);
    reads_.clear();
    parts_.clear();
    for (const std::uint32_t i : order_) {
      file_range from = requests[i].from;
      std::byte* to = requests[i].to;
      while (from.bytes > 0) {
        const std::uint64_t bytes = std::min(from.bytes, most_read);
        add({from.file, from.offset, bytes}, to);
        from.offset += bytes;
        from.bytes -= bytes;
        to += bytes;
      }
    }
  }

  std::span<planned_read> reads() noexcept { return reads_; }
  std::span<::iovec> parts_of(const planned_read& read) noexcept {
    return std::span(parts_).subspan(read.first_part, read.parts);
  }

 private:
  void add(const file_range& from, std::byte* to) {
    if (!reads_.empty()) {
      planned_read& last = reads_.back();
      const std::uint64_t end = last.offset + last.bytes;
      if (last.file == from.file && from.offset >= end && from.offset - end <= most_gap &&
          last.bytes < most_read && last.parts + 2 <= IOV_MAX) {
        const std::uint64_t gap = from.offset - end;
        if (gap > 0) {
          parts_.push_back({waste_, gap});
          ++last.parts;
        }
        parts_.push_back({to, from.bytes});
        ++last.parts;
        last.bytes += gap + from.bytes;
        return;
      }
    }
    reads_.push_back({from.file, from.offset, from.bytes, parts_.size(), 1});
    parts_.push_back({to, from.bytes});
  }

  // Destination of the bytes in gaps. All threads share it, because only the kernel writes to it
  // and nobody reads it.
  alignas(64) static inline std::byte waste_[most_gap];  // NOLINT: meant to be written

  std::vector<std::uint32_t> order_;
  std::vector<planned_read> reads_;
  std::vector<::iovec> parts_;
};

/// Sorts ranges by file and offset. Merges ranges that overlap or have a gap of at most `most_gap`
/// bytes between them. Drops empty ranges.
MILLRACE_EXPORT void coalesce(std::span<const file_range> ranges, std::uint64_t most_gap,
                              std::vector<file_range>& out);

}  // namespace millrace::loader
