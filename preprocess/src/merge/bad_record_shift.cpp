// SPDX-License-Identifier: Apache-2.0
#include "merge/bad_record_shift.hpp"

#include <charconv>

#include <fmt/format.h>

namespace millrace::preprocess {
namespace {

constexpr std::string_view file_key = "{\"file\": \"";
constexpr std::string_view line_key = ", \"line\": ";
constexpr std::string_view from_key = ", \"from_byte\": ";

// Returns the end of the string whose contents begin at `at`: the position after its closing quote.
std::size_t end_of_string(std::string_view json, std::size_t at) {
  for (; at < json.size() && json[at] != '"'; ++at) {
    if (json[at] == '\\') ++at;
  }
  return at + 1;
}

/// If `text` begins with `key` and a number, removes both and returns the number.
template <class T>
std::optional<T> take(std::string_view& text, std::string_view key) {
  if (!text.starts_with(key)) return std::nullopt;
  T value = 0;
  const char* const first = text.data() + key.size();
  const auto [end, problem] = std::from_chars(first, text.data() + text.size(), value);
  if (problem != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace

std::optional<std::string> shifted_bad_line(std::string_view line, std::int64_t lines_before,
                                            std::uint64_t whole_begin) {
  if (!line.starts_with(file_key)) return std::nullopt;
  const std::size_t behind = end_of_string(line, file_key.size());
  if (behind > line.size()) return std::nullopt;
  std::string_view rest = line.substr(behind);
  const auto number = take<std::int64_t>(rest, line_key);
  if (!number || !take<std::uint64_t>(rest, from_key)) return std::nullopt;
  std::string moved(line.substr(0, behind));
  moved += fmt::format("{}{}", line_key, *number + lines_before);
  if (whole_begin != 0) moved += fmt::format("{}{}", from_key, whole_begin);
  moved += rest;
  return moved;
}

}  // namespace millrace::preprocess
