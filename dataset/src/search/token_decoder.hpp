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
  /// Appends a token that is no byte of a run.
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
  std::int64_t at = 0;
  if (texts_->start == rule::first_token) at = std::min<std::int64_t>(1, count);
  bool ended = texts_->start != rule::until_text;
  std::size_t bytes = 0;
  for (std::int64_t i = 0; i < count && (!ended || bytes < strip_bytes()); ++i) {
    const std::size_t index =
        texts_->index_of(static_cast<std::int64_t>(document[static_cast<std::size_t>(i)]));
    const bool first = i < at || !ended;
    bytes += (first ? texts_->first : texts_->inner)[index].size;
    if (bytes > 0 || (texts_->flags[index] & formats::token_texts::ends_start) != 0) ended = true;
    at = std::max(at, i + 1);
  }
  // A run of bytes belongs together.
  while (0 < at && at < count &&
         is_byte(static_cast<std::int64_t>(document[static_cast<std::size_t>(at) - 1])) &&
         is_byte(static_cast<std::int64_t>(document[static_cast<std::size_t>(at)]))) {
    ++at;
  }
  return at;
}

template <class T>
void token_decoder::decode(std::span<const T> document, std::int64_t from, std::int64_t to,
                           decoded_tokens& out) const {
  using rule = formats::token_texts::first_rule;
  const auto index_at = [&](std::int64_t i) {
    return texts_->index_of(static_cast<std::int64_t>(document[static_cast<std::size_t>(i)]));
  };
  const std::size_t before = out.text.size();
  std::int64_t i = from;
  if (texts_->runs == formats::token_texts::byte_rule::none) {
    if (from == 0 && texts_->start != rule::none) {
      for (bool first = true; first && i < to; ++i) {
        const std::size_t index = index_at(i);
        append(texts_->first[index], out.text);
        out.ends.push_back(out.text.size());
        first = texts_->start == rule::until_text && out.text.size() == before &&
                (texts_->flags[index] & formats::token_texts::ends_start) == 0;
      }
    }
    // Copies 16 bytes at a time; nearly all tokens are shorter.
    constexpr std::size_t step = formats::token_texts::slack_bytes;
    while (i < to) {
      constexpr std::int64_t tokens_at_once = 512;
      const std::int64_t end = std::min(to, i + tokens_at_once);
      std::size_t room = 0;
      for (std::int64_t k = i; k < end; ++k) room += texts_->inner[index_at(k)].size;
      const std::size_t size = out.text.size();
      out.text.resize(size + room + step);
      char* at = out.text.data() + size;
      for (; i < end; ++i) {
        const formats::token_texts::place& place = texts_->inner[index_at(i)];
        const char* const bytes = texts_->bytes.data() + place.begin;
        std::copy_n(bytes, step, at);
        if (place.size > step) std::copy_n(bytes + step, place.size - step, at + step);
        at += place.size;
        out.ends.push_back(static_cast<std::size_t>(at - out.text.data()));
      }
      out.text.resize(size + room);
    }
  } else {
    bool start = from == 0 && texts_->start != rule::none;
    std::string run;
    while (i < to) {
      const std::size_t index = index_at(i);
      if ((texts_->flags[index] & formats::token_texts::is_byte) != 0) {
        run.clear();
        for (; i < to; ++i) {
          const std::size_t each = index_at(i);
          if ((texts_->flags[each] & formats::token_texts::is_byte) == 0) break;
          append(texts_->inner[each], run);
        }
        append_run(run, out);
        start = false;
        continue;
      }
      append((start ? texts_->first : texts_->inner)[index], out.text);
      out.ends.push_back(out.text.size());
      if (start) {
        start = texts_->start == rule::until_text && out.text.size() == before &&
                (texts_->flags[index] & formats::token_texts::ends_start) == 0;
      }
      ++i;
    }
  }
  if (from == 0 && texts_->strip_times > 0 && before == 0) strip(out);
}

}  // namespace millrace::dataset::detail
