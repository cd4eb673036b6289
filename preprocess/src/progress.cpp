// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <millrace/command/run_command.hpp>

namespace millrace::preprocess {
namespace {
constexpr std::chrono::milliseconds bar_period{200};
constexpr std::chrono::milliseconds line_period{1000};
constexpr const char* erase_line = "\r\033[K";

template <class... Values>
void tell(fmt::format_string<Values...> format, Values&&... values) {
  command::tell(fmt::format(format, std::forward<Values>(values)...));
}

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
    tell("Processed {} documents ({:.2f} docs/s, {:.2f} MB/s).\n", state.documents,
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
    tell("{}{} documents  {:.0f} docs/s  {:.1f} MB/s", erase_line, state.documents, docs, rate);
    return;
  }
  const double part =
      std::min(1.0, static_cast<double>(state.read_bytes) / static_cast<double>(total_bytes_));
  const auto filled = static_cast<std::size_t>(part * static_cast<double>(width));
  tell("{}[{:=<{}}>{: <{}}] {:3.0f}%  {:.0f} docs/s  {:.1f} MB/s  {:.0f} s left", erase_line, "",
       filled, "", width - filled, part * 100, docs, rate, seconds * (1 - part) / part);
}

void progress::note(std::string_view line) {
  tell("{}{}\n", style_ == style::bar ? erase_line : "", command::one_line(line));
}

void progress::close() noexcept {
  if (style_ == style::bar) command::tell(erase_line);
}

}  // namespace millrace::preprocess
