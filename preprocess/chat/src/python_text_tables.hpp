// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::chat {

/// The code points first, first + step, ..., last, which move by `delta`.
struct case_run {
  std::uint32_t first;
  std::uint32_t last;
  std::uint32_t step;
  std::int32_t delta;
};
/// A code point that becomes several.
struct case_text {
  std::uint32_t point;
  const char* utf8;
};
struct point_range {
  std::uint32_t first;
  std::uint32_t last;
};

// All sorted. str.title() of one code point is what str.capitalize() does to the first one.
extern const case_run upper_runs[], lower_runs[], title_runs[];
extern const std::size_t upper_run_count, lower_run_count, title_run_count;
extern const case_text upper_texts[], lower_texts[], title_texts[];
extern const std::size_t upper_text_count, lower_text_count, title_text_count;
extern const point_range unprintable_ranges[], cased_ranges[], case_ignorable_ranges[];
extern const std::size_t unprintable_range_count, cased_range_count, case_ignorable_range_count;

}  // namespace millrace::chat
