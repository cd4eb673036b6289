// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>
#include <millrace/formats/dtype.hpp>

/// What other programs write beside or before an array of tokens: the header of llm.c, Nanoset's
/// `.ds.metadata`, a row of OLMo's `.csv.gz`. Specification: formats/spec/token_arrays.md.
///
/// These formats store tokens as uint16 or uint32. Here, uint32 is `dtype::int32`: no tokenizer has
/// ids of 2^31 or more, and whoever converts refuses them.
namespace millrace::formats {

inline constexpr std::size_t llm_c_header_bytes = 1024;
inline constexpr std::int64_t llm_c_most_tokens = 0x7FFFFFFF;  // an int32 counts them

/// One of the two kinds of llm.c's token files.
struct llm_c_kind {
  std::int32_t magic;
  std::int32_t version;
  dtype type;
};
inline constexpr std::array<llm_c_kind, 2> llm_c_kinds = {
    {{20240520, 1, dtype::uint16}, {20240801, 7, dtype::int32}}};  // GPT-2, Llama 3

/// True if a file begins as llm.c's token files do.
inline bool begins_as_llm_c(std::span<const std::byte> head) noexcept {
  std::int32_t magic = 0;
  if (head.size() < sizeof(magic)) return false;
  std::memcpy(&magic, head.data(), sizeof(magic));
  return std::ranges::any_of(llm_c_kinds, [&](const auto& kind) { return kind.magic == magic; });
}

/// True if a file begins with the magic of numpy's `.npy`.
inline bool begins_as_npy(std::span<const std::byte> head) noexcept {
  constexpr std::string_view magic = "\x93NUMPY";
  return head.size() >= magic.size() && std::memcmp(head.data(), magic.data(), magic.size()) == 0;
}

struct llm_c_view {
  dtype type = dtype::uint16;
  std::int64_t tokens = 0;
};

/// Parses the header of llm.c's token files.
///
/// @param head       the first `llm_c_header_bytes` of the file, or the whole file if it is shorter
/// @param file_size  in bytes
/// @throws format_error  the header is invalid, or the size of the file differs from the header
inline llm_c_view parse_llm_c(std::span<const std::byte> head, std::uint64_t file_size) {
  if (head.size() < llm_c_header_bytes) {
    throw format_error(head.size(), "the header of llm.c has 1024 bytes, found only " +
                                        std::to_string(head.size()));
  }
  std::array<std::int32_t, 3> words{};
  std::memcpy(words.data(), head.data(), sizeof(words));
  const auto kind =
      std::ranges::find_if(llm_c_kinds, [&](const auto& each) { return each.magic == words[0]; });
  if (kind == llm_c_kinds.end()) {
    throw format_error(0,
                       "not a token file of llm.c: expected the magic 20240520 or 20240801, "
                       "found " +
                           std::to_string(words[0]) +
                           (words[0] == 20240522 ? ", the magic of its evaluation files" : ""));
  }
  if (words[1] != kind->version) {
    throw format_error(4, "expected version " + std::to_string(kind->version) + " of magic " +
                              std::to_string(kind->magic) + ", found " + std::to_string(words[1]));
  }
  if (words[2] < 0) {
    throw format_error(8,
                       "the token count is " + std::to_string(words[2]) + ", expected 0 or more");
  }
  const std::uint64_t expected =
      llm_c_header_bytes + static_cast<std::uint64_t>(words[2]) * size_bytes(kind->type);
  if (file_size != expected) {
    throw format_error(std::min(file_size, expected),
                       "the file has " + std::to_string(file_size) + " bytes, expected " +
                           std::to_string(expected) + " for a header and " +
                           std::to_string(words[2]) + " tokens");
  }
  return {kind->type, words[2]};
}

/// @pre `type` is uint16 or int32, and 0 <= tokens <= llm_c_most_tokens
inline std::vector<std::byte> encode_llm_c_header(dtype type, std::int64_t tokens) {
  const llm_c_kind& kind = llm_c_kinds[type == dtype::uint16 ? 0 : 1];
  const std::array<std::int32_t, 3> words = {kind.magic, kind.version,
                                             static_cast<std::int32_t>(tokens)};
  std::vector<std::byte> header(llm_c_header_bytes);
  std::memcpy(header.data(), words.data(), sizeof(words));
  return header;
}

/// The contents of `.ds.metadata`.
struct nanoset_metadata {
  std::string tokenizer;       ///< the name or path that datatrove was given
  dtype type = dtype::uint16;  ///< uint16 or int32
  std::int64_t tokens = 0;
};

/// @throws format_error  the text has no token size of 2 or 4 bytes, or no token count
inline nanoset_metadata parse_nanoset_metadata(std::string_view text) {
  nanoset_metadata metadata;
  const std::size_t line_end = std::min(text.find('\n'), text.size());
  const std::string_view first = text.substr(0, line_end);
  const std::size_t bar = first.rfind('|');
  const std::string_view size = bar == first.npos ? first : first.substr(bar + 1);
  if (bar == first.npos || (size != "2" && size != "4")) {
    throw format_error(bar == first.npos ? 0 : bar + 1,
                       "the first line is " + in_quotes(first) +
                           ", expected TOKENIZER|2 or TOKENIZER|4, the bytes of a token");
  }
  metadata.tokenizer = first.substr(0, bar);
  metadata.type = size == "2" ? dtype::uint16 : dtype::int32;
  const std::size_t begin = std::min(line_end + 1, text.size());
  const std::string_view count = text.substr(begin, text.find('\n', begin) - begin);
  const auto parsed = std::from_chars(count.data(), count.data() + count.size(), metadata.tokens);
  if (parsed.ec != std::errc() || parsed.ptr != count.data() + count.size() ||
      metadata.tokens < 0) {
    throw format_error(
        begin, "the second line is " + in_quotes(count) + ", expected the number of tokens");
  }
  return metadata;
}

/// The text that datatrove writes, without a line end. Its third line is the count with three
/// digits and a unit, as Python's `humanize.metric(count, unit="T")` prints it.
/// @pre tokens >= 0
inline std::string encode_nanoset_metadata(const nanoset_metadata& metadata) {
  const auto tokens = static_cast<double>(metadata.tokens);
  int exponent = metadata.tokens == 0 ? 0 : static_cast<int>(std::floor(std::log10(tokens)));
  std::array<char, 32> number{};
  const auto print = [&] {
    const double scaled = tokens / std::pow(10.0, exponent / 3 * 3);
    (void)std::snprintf(number.data(), number.size(), "%.*f", 2 - exponent % 3, scaled);
    return std::strtod(number.data(), nullptr);
  };
  // Rounded up to a number with one more digit, such as 9.999 to 10.00.
  if (print() >= std::pow(10.0, exponent % 3 + 1)) {
    ++exponent;
    print();
  }
  const std::string unit = exponent < 3 ? "" : std::string(1, "kMGTPE"[exponent / 3 - 1]);
  return metadata.tokenizer + '|' + std::to_string(size_bytes(metadata.type)) + '\n' +
         std::to_string(metadata.tokens) + '\n' + number.data() + ' ' + unit + 'T';
}

/// Where a document lies in an array.
struct array_document {
  std::optional<std::int64_t> begin;  ///< empty if the row has only the end
  std::int64_t end = 0;
  bool has_more = false;  ///< more columns follow
};

/// Parses `BEGIN,END`, more columns, or only `END`. Returns nullopt if the row is neither.
inline std::optional<array_document> parse_array_row(std::string_view row) noexcept {
  array_document document;
  std::array<std::int64_t, 2> numbers{};
  std::size_t count = 0;
  while (count < numbers.size()) {
    const auto parsed = std::from_chars(row.data(), row.data() + row.size(), numbers[count]);
    if (parsed.ec != std::errc()) return std::nullopt;
    row.remove_prefix(static_cast<std::size_t>(parsed.ptr - row.data()));
    ++count;
    if (!row.starts_with(',')) break;
    if (count < numbers.size()) row.remove_prefix(1);
  }
  document.has_more = row.starts_with(',');
  if (!document.has_more && !row.empty() && row != "\r") return std::nullopt;
  if (count == 2) document.begin = numbers[0];
  document.end = numbers[count - 1];
  return document;
}

}  // namespace millrace::formats
