// SPDX-License-Identifier: Apache-2.0
#include "record/line_window.hpp"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include <millrace/io/file_ops.hpp>

#include "input/json_text.hpp"
#include "process/stop_flag.hpp"

namespace millrace::preprocess {
namespace {

// Returns the number of bytes at the end of `text` that may be the beginning of an incomplete
// character.
std::size_t unfinished_bytes(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto lead = static_cast<std::uint8_t>(text[text.size() - back]);
    if ((lead & 0xC0) == 0x80) continue;
    const auto needed = static_cast<std::size_t>(std::countl_one(lead));
    return needed > back && needed <= 4 ? back : 0;
  }
  return 0;
}

}  // namespace

line_window::line_window(line_range line, std::size_t window_bytes, std::uint64_t offset_bytes)
    : line_(std::move(line)),
      size_(window_bytes),
      buffer_(std::make_unique_for_overwrite<char[]>(window_bytes)),
      base_(offset_bytes) {
  assert(window_bytes >= least_bytes && offset_bytes <= line_.size_bytes());
  at = end = buffer_.get();
}

bool line_window::refill() {
  if (invalid_) return false;
  expect_going_on(line_.stop);
  char* const buffer = buffer_.get();
  const auto passed = static_cast<std::size_t>(at - buffer);
  const auto checked = static_cast<std::size_t>(end - at);
  filled_ -= passed;
  base_ += passed;
  std::memmove(buffer, at, filled_);
  at = buffer;

  const std::uint64_t left = line_.size_bytes() - base_ - filled_;
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(size_ - filled_, left));
  const std::size_t got =
      io::pread_some(line_.fd, std::as_writable_bytes(std::span(buffer + filled_, wanted)),
                     line_.begin_bytes + base_ + filled_, line_.path);
  if (got != wanted) throw io_error(line_.path, "read (the file has become shorter)", EIO);
  filled_ += got;

  const bool ended = wanted == left;
  const std::string_view all(buffer, filled_);
  std::size_t whole = filled_ - (ended ? 0 : unfinished_bytes(all));
  const std::string_view fresh = all.substr(checked, whole - checked);
  if (!simdjson::validate_utf8(fresh.data(), fresh.size())) {
    invalid_ = base_ + checked + detail::first_invalid_utf8(fresh);
    whole = checked;
  }
  end = buffer + whole;
  return whole > checked;
}

}  // namespace millrace::preprocess
