// SPDX-License-Identifier: Apache-2.0
#include "report/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
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

// Called again for each update, because the user may resize the terminal window.
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
    // Scripts search for this sentence of Megatron's, so other values come after the sentence.
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

namespace {

constexpr std::size_t least_bar = 8;
constexpr std::size_t longest_bar = 30;
constexpr double hours_shown = 10'000;  // longer durations are shown as 10,000 hours

// Returns the text of the line without the `dropped` least important fields.
std::string words(const bar_view& view, int dropped) {
  std::string text;
  const auto add = [&](int rank, const std::string& part) {
    if (rank < dropped) return;
    if (!text.empty()) text += "  ";
    text += part;
  };
  if (view.done) {
    add(4, fmt::format("{:3.0f}%", *view.done * 100));
  } else {
    add(4, fmt::format("{} documents", view.documents));
  }
  add(3, fmt::format("{:.1f} MB/s", view.megabytes_rate));
  add(0, fmt::format("{} docs/s", short_number(view.documents_rate)));
  add(1, fmt::format("{} tokens/s", short_number(view.tokens_rate)));
  if (view.seconds_left) add(2, fmt::format("{} left", short_duration(*view.seconds_left)));
  return text;
}

std::string bar(double done, std::size_t width) {
  const auto filled = static_cast<std::size_t>(done * static_cast<double>(width));
  return fmt::format("[{:=<{}}>{: <{}}] ", "", filled, "", width - filled);
}

}  // namespace

std::string bar_line(const bar_view& given, std::size_t columns) {
  bar_view view = given;
  if (view.done) view.done = std::clamp(*view.done, 0.0, 1.0);
  const std::size_t room = columns > 0 ? columns - 1 : 0;  // the last column may wrap
  std::string text;
  for (int dropped = 0; dropped <= 5; ++dropped) {
    text = words(view, dropped);
    const std::size_t bar_room = view.done ? least_bar + 4 : 0;  // "[", ">", "]" and a space
    // If space is short, omit the documents per second first, then the bar, then other fields.
    if (text.size() + (dropped == 0 ? bar_room : 0) <= room) break;
  }
  if (!view.done || text.size() + least_bar + 4 > room) return text;
  return bar(*view.done, std::min(longest_bar, room - text.size() - 4)) + text;
}

std::string short_number(double value) {
  constexpr std::array<char, 5> units = {'k', 'M', 'G', 'T', 'P'};
  if (!(value > 0)) return "0";
  if (value < 9999.5) return fmt::format("{:.0f}", value);
  std::size_t unit = 0;
  value /= 1000;
  // If the value would be rounded to 1000, show it as 1 of the next unit.
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}{}", value, digits, units[unit]);
}

std::string short_duration(double seconds) {
  const double most = hours_shown * 3600;
  const auto whole = static_cast<std::int64_t>(std::clamp(std::round(seconds), 0.0, most));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace millrace::preprocess
