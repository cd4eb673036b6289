// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>

// Example:
//
//     millrace::formats::token_texts texts;  // a vocabulary of two tokens
//     texts.add("Hello");
//     texts.add(" world");
//     texts.end("\xEF\xBF\xBD");

namespace millrace::formats {

/// The texts of all tokens of a vocabulary: what a tokenizer's decode() makes of each id, as data.
/// So a library can decode a part of a document without the tokenizer.
///
/// The text of a document is the concatenation of the texts of its tokens, with three exceptions:
///
/// - Tokens at the start of a document may have another text (`first_rule`).
/// - In some vocabularies, a token can be one byte of a character. Neighboring tokens of this kind
///   are a run, and bytes that are not UTF-8 become U+FFFD (`byte_rule`).
/// - Leading characters of the whole text may be dropped (`strip`).
struct token_texts {
  /// Which tokens have the text `first` instead of `inner`.
  enum class first_rule : std::uint8_t {
    none,         ///< no tokens
    first_token,  ///< the first token of a document
    until_text,   ///< the first tokens, until one gives a text or has the flag `ends_start`
  };
  /// What becomes of a run of bytes that is not UTF-8.
  enum class byte_rule : std::uint8_t {
    none,  ///< there are no runs: tokens of one byte are like any others
    each,  ///< each byte that is not part of a character becomes U+FFFD
    run,   ///< each byte of the run becomes U+FFFD
  };
  /// Flags of a token.
  enum : std::uint8_t {
    is_byte = 1,     ///< its text is one byte, which is part of a run
    ends_start = 2,  ///< `first_rule::until_text` ends after this token, even if it gives no text
  };
  /// The bytes [begin, begin + size) of `bytes`.
  struct place {
    std::uint32_t begin = 0;
    std::uint32_t size = 0;
  };
  /// So many bytes may be read after the end of each text.
  static constexpr std::size_t slack_bytes = 16;

  first_rule start = first_rule::none;
  byte_rule runs = byte_rule::none;
  std::string strip;            ///< dropped from the start of a document's text ...
  std::size_t strip_times = 0;  ///< ... at most this often

  std::string bytes;
  std::vector<place> inner;         ///< by id; the last entry is that of all other ids
  std::vector<place> first;         ///< as `inner`; equal to it with `first_rule::none`
  std::vector<std::uint8_t> flags;  ///< as `inner`

  /// Adds the text of the next id.
  /// @throws error  all texts together have more than 4 GiB
  void add(std::string_view text, std::uint8_t flag = 0) { add(text, text, flag); }
  void add(std::string_view text, std::string_view first_text, std::uint8_t flag) {
    inner.push_back(store(text));
    first.push_back(text == first_text ? inner.back() : store(first_text));
    flags.push_back(flag);
  }
  /// Adds the text of all ids that have no text yet, and so completes the table.
  void end(std::string_view text) { end(text, text); }
  void end(std::string_view text, std::string_view first_text) {
    add(text, first_text, 0);
    bytes.append(slack_bytes, '\0');
  }

  /// The index of an id in `inner`, `first` and `flags`.
  std::size_t index_of(std::int64_t id) const noexcept {
    return static_cast<std::size_t>(std::min(static_cast<std::uint64_t>(id), inner.size() - 1));
  }
  std::string_view text(const place& at) const noexcept {
    return {bytes.data() + at.begin, at.size};
  }

 private:
  place store(std::string_view text) {
    if (text.size() > UINT32_MAX - slack_bytes - bytes.size())
      throw error("the texts of all tokens together have more than 4 GiB");
    const auto begin = static_cast<std::uint32_t>(bytes.size());
    bytes += text;
    return {begin, static_cast<std::uint32_t>(text.size())};
  }
};

}  // namespace millrace::formats
