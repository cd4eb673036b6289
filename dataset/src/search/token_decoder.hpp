// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/formats/token_texts.hpp>

namespace millrace::dataset::detail {

/// The text of some tokens of a document.
struct decoded_tokens {
  std::string text;
  std::vector<std::size_t> ends;  ///< where the text of each token ends

  /// The index of the token whose text contains a byte; ends.size() for the end of the text.
  std::int64_t token_of(std::size_t byte) const {
    return std::ranges::upper_bound(ends, byte) - ends.begin();
  }
  /// Where the text of a token begins.
  std::size_t begin_of(std::int64_t token) const {
    return token == 0 ? 0 : ends[static_cast<std::size_t>(token) - 1];
  }
};

/// Decodes parts of a document by a table of texts.
class token_decoder {
 public:
  explicit token_decoder(const formats::token_texts& texts) : texts_(&texts) {}

  const formats::token_texts& texts() const noexcept { return *texts_; }

  /// True if the token is a byte of a run. A part must not begin or end inside a run.
  bool is_byte(std::int64_t id) const noexcept {
    return (texts_->flags[texts_->index_of(id)] & formats::token_texts::is_byte) != 0;
  }

  /// The least number of bytes that a token gives, unless it is at the start of a document.
  std::int64_t size_of(std::int64_t id) const noexcept {
    return texts_->inner[texts_->index_of(id)].size;
  }

  /// The number of tokens at the start of a document whose texts depend on their place. A part that
  /// does not begin with the document must begin after them.
  template <class T>
  std::int64_t start_tokens(std::span<const T> document) const;

  /// Appends the text of tokens [from, to) of a document to `out`.
  template <class T>
  void decode(std::span<const T> document, std::int64_t from, std::int64_t to,
              decoded_tokens& out) const;

 private:
  /// The least size of a text of which everything that `strip` drops is known.
  std::size_t strip_bytes() const noexcept { return texts_->strip.size() * texts_->strip_times; }
  void strip(decoded_tokens& out) const;
  template <class T>
  std::size_t index_at(std::span<const T> document, std::int64_t token) const noexcept {
    return texts_->index_of(static_cast<std::int64_t>(document[static_cast<std::size_t>(token)]));
  }
  template <class T>
  bool is_byte_at(std::span<const T> document, std::int64_t token) const noexcept {
    return (texts_->flags[index_at(document, token)] & formats::token_texts::is_byte) != 0;
  }

  /// Appends tokens [from, to), none of which is a byte of a run or at the start of the document.
  template <class T>
  void decode_plain(std::span<const T> document, std::int64_t from, std::int64_t to,
                    decoded_tokens& out) const;
  void append(const formats::token_texts::place& place, std::string& text) const {
    text.append(texts_->bytes, place.begin, place.size);
  }
  void append_run(std::string_view bytes, decoded_tokens& out) const;

  const formats::token_texts* texts_;
};

template <class T>
std::int64_t token_decoder::start_tokens(std::span<const T> document) const {
  using rule = formats::token_texts::first_rule;
  const std::int64_t count = std::ssize(document);
  std::int64_t at = texts_->start == rule::first_token ? std::min<std::int64_t>(1, count) : 0;
  bool is_start = texts_->start == rule::until_text;
  std::size_t bytes = 0;
  for (std::int64_t i = 0; i < count && (is_start || bytes < strip_bytes()); ++i) {
    const std::size_t index = index_at(document, i);
    bytes += (i < at || is_start ? texts_->first : texts_->inner)[index].size;
    if (bytes > 0 || (texts_->flags[index] & formats::token_texts::ends_start) != 0) {
      is_start = false;
    }
    at = std::max(at, i + 1);
  }
  // A run of bytes belongs together.
  while (0 < at && at < count && is_byte_at(document, at - 1) && is_byte_at(document, at)) ++at;
  return at;
}

template <class T>
void token_decoder::decode(std::span<const T> document, std::int64_t from, std::int64_t to,
                           decoded_tokens& out) const {
  using rule = formats::token_texts::first_rule;
  const std::size_t before = out.text.size();
  std::int64_t at = from;
  for (bool start = from == 0 && texts_->start != rule::none; start && at < to;) {
    const std::size_t index = index_at(document, at);
    if (is_byte_at(document, at)) break;
    append(texts_->first[index], out.text);
    out.ends.push_back(out.text.size());
    ++at;
    start = texts_->start == rule::until_text && out.text.size() == before &&
            (texts_->flags[index] & formats::token_texts::ends_start) == 0;
  }
  const bool has_runs = texts_->runs != formats::token_texts::byte_rule::none;
  std::string run;
  while (at < to) {
    std::int64_t end = has_runs ? at : to;
    while (end < to && !is_byte_at(document, end)) ++end;
    decode_plain(document, at, end, out);
    run.clear();
    for (at = end; at < to && is_byte_at(document, at); ++at) {
      append(texts_->inner[index_at(document, at)], run);
    }
    if (!run.empty()) append_run(run, out);
  }
  if (from == 0 && texts_->strip_times > 0 && before == 0) strip(out);
}

template <class T>
void token_decoder::decode_plain(std::span<const T> document, std::int64_t from, std::int64_t to,
                                 decoded_tokens& out) const {
  // Copies 16 bytes at a time; nearly all tokens are shorter.
  constexpr std::size_t step = formats::token_texts::slack_bytes;
  constexpr std::int64_t tokens_at_once = 512;
  for (std::int64_t i = from; i < to;) {
    const std::int64_t end = std::min(to, i + tokens_at_once);
    std::size_t size = 0;
    for (std::int64_t k = i; k < end; ++k) size += texts_->inner[index_at(document, k)].size;
    const std::size_t begin = out.text.size();
    out.text.resize(begin + size + step);
    char* at = out.text.data() + begin;
    for (; i < end; ++i) {
      const formats::token_texts::place& place = texts_->inner[index_at(document, i)];
      const char* const bytes = texts_->bytes.data() + place.begin;
      std::copy_n(bytes, step, at);
      if (place.size > step) std::copy_n(bytes + step, place.size - step, at + step);
      at += place.size;
      out.ends.push_back(static_cast<std::size_t>(at - out.text.data()));
    }
    out.text.resize(begin + size);
  }
}

}  // namespace millrace::dataset::detail
