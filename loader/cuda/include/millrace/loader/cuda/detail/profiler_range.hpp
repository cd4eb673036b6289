// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <iterator>

#include <millrace/loader/cuda/detail/cuda_api.hpp>

namespace millrace::loader::cuda {

/// Shows the lifetime of this object in a profiler's timeline, on the calling thread.
class profiler_range {
 public:
  /// @param marks   if null, the object does nothing
  /// @param action  at most 31 bytes; the profiler shows "millrace: ACTION NUMBER"
  profiler_range(const profiler_marks* marks, const char* action, std::int64_t number) noexcept
      : marks_(marks) {
    if (marks_ == nullptr) return;
    char text[80] = "millrace: ";
    std::strncat(text, action, 31);
    char* end = text + std::strlen(text);
    *end++ = ' ';
    end = std::to_chars(end, std::end(text) - 1, number).ptr;
    *end = '\0';
    marks_->begin_range(text);
  }
  profiler_range(const profiler_range&) = delete;
  profiler_range& operator=(const profiler_range&) = delete;
  ~profiler_range() {
    if (marks_ != nullptr) marks_->end_range();
  }

 private:
  const profiler_marks* marks_;
};

}  // namespace millrace::loader::cuda
