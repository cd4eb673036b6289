// SPDX-License-Identifier: Apache-2.0
#include "watch/bar_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace millrace::preprocess {
namespace {

constexpr std::size_t least_bar = 8;
constexpr std::size_t longest_bar = 30;
constexpr double hours_shown = 10'000;  // longer durations are shown as this

// Returns the text of the line, without its `dropped` least important parts.
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
    // The bar is more important than documents per second, and less important than the rest.
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
  // A value that would be rounded to 1000 is shown as 1 of the next unit.
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
