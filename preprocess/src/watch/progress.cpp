// SPDX-License-Identifier: Apache-2.0
#include "watch/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <millrace/command/run_command.hpp>

#include "watch/bar_text.hpp"

namespace millrace::preprocess {
namespace {
constexpr std::chrono::milliseconds bar_period{200};
constexpr std::chrono::milliseconds line_period{1000};
constexpr const char* erase_line = "\r\033[K";

template <class... Values>
void tell(fmt::format_string<Values...> format, Values&&... values) {
  command::tell(fmt::format(format, std::forward<Values>(values)...));
}

// Called for each update, because the size of a window may change.
std::size_t terminal_columns() {
  ::winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
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
    // Scripts search for Megatron's sentence, so additional values come after it.
    std::string line = fmt::format("Processed {} documents ({:.2f} docs/s, {:.2f} MB/s).",
                                   state.documents, static_cast<double>(state.documents) / seconds,
                                   static_cast<double>(state.input_bytes) * 1e-6 / seconds);
    if (state.tokens > 0) {
      line += fmt::format(" {:.0f} tokens/s.", static_cast<double>(state.tokens) / seconds);
    }
    tell("{}\n", line);
  }
  last_shown_ = now;
}

void progress::draw_bar(const progress_state& state, double seconds) {
  const auto read = static_cast<double>(state.read_bytes);
  const auto total = static_cast<double>(total_bytes_);
  documents_rate_.update(static_cast<double>(state.documents), seconds);
  tokens_rate_.update(static_cast<double>(state.tokens), seconds);
  input_rate_.update(static_cast<double>(state.input_bytes), seconds);
  read_rate_.update(read, seconds);
  bar_view view{.documents = state.documents,
                .megabytes_rate = input_rate_.per_second() * 1e-6,
                .documents_rate = documents_rate_.per_second(),
                .tokens_rate = tokens_rate_.per_second(),
                .done = std::nullopt,
                .seconds_left = std::nullopt};
  if (total_bytes_ != 0 && state.read_bytes != 0) {
    view.done = read / total;
    const double rate = read_rate_.per_second();
    if (rate > 0) view.seconds_left = std::max(0.0, total - read) / rate;
  }
  tell("{}{}", erase_line, bar_line(view, terminal_columns()));
}

void progress::note(std::string_view line) {
  tell("{}{}\n", style_ == style::bar ? erase_line : "", command::one_line(line));
}

void progress::close() noexcept {
  if (style_ == style::bar) command::tell(erase_line);
}

}  // namespace millrace::preprocess
