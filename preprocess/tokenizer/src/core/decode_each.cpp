// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/formats/detail/utf8.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "unicode/utf8.hpp"

namespace millrace::tokenizer {
namespace {

using id_span = std::span<const std::int64_t>;
using texts = std::vector<std::string>;

/// Number of bytes that `part`, the text of the first ids, contributes to the text of all ids. If
/// later ids change the end of `part`, this is the unchanged part, up to a whole character.
std::size_t settled_bytes(std::string_view part, std::string_view whole) {
  const auto differ = std::ranges::mismatch(part, whole);
  auto bytes = static_cast<std::size_t>(differ.in2 - whole.begin());
  if (bytes == part.size()) return bytes;
  const auto is_inside_character = [&](std::size_t at) {
    return at < whole.size() && (static_cast<unsigned char>(whole[at]) & 0xC0U) == 0x80;
  };
  while (bytes > 0 && is_inside_character(bytes)) --bytes;
  return bytes;
}

/// Appends the text of each id after the first `before` ids, which are only context.
void append_texts(const tokenizer& with, id_span ids, std::size_t before, texts& out) {
  const std::string whole = with.decode(ids);
  std::size_t done = settled_bytes(with.decode(ids.first(before)), whole);
  for (std::size_t i = before; i < ids.size(); ++i) {
    const bool is_last = i + 1 == ids.size();
    const std::size_t end =
        is_last ? whole.size() : settled_bytes(with.decode(ids.first(i + 1)), whole);
    out.push_back(whole.substr(done, std::max(end, done) - done));
    done = std::max(end, done);
  }
}

/// Decodes short windows, because the time of `append_texts` is quadratic. Cuts where no later id
/// changes the text, as far as the next ids tell. Returns nullopt if there is no such place.
std::optional<texts> windows_of(const tokenizer& with, id_span ids) {
  constexpr std::size_t context = 16;
  constexpr std::size_t window = 64;
  texts out;
  for (std::size_t first = 0; first < ids.size();) {
    const std::size_t before = std::min(first, context);
    const std::size_t start = first - before;
    std::size_t end = std::min(first + window, ids.size());
    const auto is_cut = [&] {
      if (end == ids.size()) return true;
      const std::string part = with.decode(ids.subspan(start, end - start));
      const std::size_t after = std::min(end + context, ids.size());
      return with.decode(ids.subspan(start, after - start)).starts_with(part);
    };
    while (!is_cut()) {
      if (++end > first + 4 * window) return std::nullopt;
    }
    append_texts(with, ids.subspan(start, end - start), before, out);
    first = end;
  }
  return out;
}

std::string joined(const texts& parts) {
  std::string all;
  for (const std::string& each : parts) all += each;
  return all;
}

/// Gives each id that is one byte of a character its byte. Such an id alone decodes to U+FFFD, and
/// to nothing while its character is incomplete.
void divide_characters(const tokenizer& with, id_span ids, texts& parts) {
  const auto is_byte = [&](std::size_t i) {
    return with.decode(ids.subspan(i, 1)) == detail::replacement_character;
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string character = parts[i];
    const std::size_t bytes = formats::utf8_sequence_bytes(character);
    if (bytes < 2 || bytes != character.size() || bytes > i + 1) continue;
    const std::size_t first = i + 1 - bytes;
    bool divides = is_byte(i);
    for (std::size_t k = first; divides && k < i; ++k) divides = parts[k].empty() && is_byte(k);
    for (std::size_t k = 0; divides && k < bytes; ++k) parts[first + k] = character[k];
  }
}

}  // namespace

std::vector<std::string> decode_each(const tokenizer& with, std::span<const std::int64_t> ids) {
  std::optional<texts> parts = windows_of(with, ids);
  if (!parts || joined(*parts) != with.decode(ids)) {
    parts.emplace();
    append_texts(with, ids, 0, *parts);
  }
  divide_characters(with, ids, *parts);
  return *std::move(parts);
}

}  // namespace millrace::tokenizer
