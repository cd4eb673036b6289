// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

namespace millrace::preprocess {
namespace {
constexpr std::chrono::milliseconds bar_period{200};
constexpr std::chrono::milliseconds line_period{1000};
constexpr const char* erase_line = "\r\033[K";
}  // namespace

progress::style progress::style_of_stderr() {
  return ::isatty(STDERR_FILENO) == 1 ? style::bar : style::lines;
}

progress::progress(style how, std::int64_t log_interval, std::uint64_t total_bytes)
    : style_(how),
      log_interval_(log_interval),
      total_bytes_(total_bytes),
      next_documents_(log_interval) {}

void progress::update(const progress_state& state) {
  if (style_ == style::silent) return;
  const auto now = clock::now();
  if (now - last_shown_ < (style_ == style::bar ? bar_period : line_period)) return;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  if (style_ == style::bar) {
    draw_bar(state, seconds);
  } else {
    if (state.documents < next_documents_) return;
    next_documents_ = state.documents + log_interval_;
    fmt::print(stderr, "Processed {} documents ({:.2f} docs/s, {:.2f} MB/s).\n", state.documents,
               static_cast<double>(state.documents) / seconds,
               static_cast<double>(state.input_bytes) * 1e-6 / seconds);
  }
  last_shown_ = now;
}

void progress::draw_bar(const progress_state& state, double seconds) const {
  constexpr std::size_t width = 30;
  const double rate = static_cast<double>(state.input_bytes) * 1e-6 / seconds;
  const double docs = static_cast<double>(state.documents) / seconds;
  if (total_bytes_ == 0 || state.read_bytes == 0) {
    fmt::print(stderr, "{}{} documents  {:.0f} docs/s  {:.1f} MB/s", erase_line, state.documents,
               docs, rate);
    return;
  }
  const double part = std::min(1.0, static_cast<double>(state.read_bytes) /
                                        static_cast<double>(total_bytes_));
  const auto filled = static_cast<std::size_t>(part * static_cast<double>(width));
  fmt::print(stderr, "{}[{:=<{}}>{: <{}}] {:3.0f}%  {:.0f} docs/s  {:.1f} MB/s  {:.0f} s left",
             erase_line, "", filled, "", width - filled, part * 100, docs, rate,
             seconds * (1 - part) / part);
}

void progress::note(std::string_view line) {
  fmt::print(stderr, "{}{}\n", style_ == style::bar ? erase_line : "", line);
}

void progress::close() {
  if (style_ == style::bar) fmt::print(stderr, "{}", erase_line);
}

}  // namespace millrace::preprocess
