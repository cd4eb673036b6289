// SPDX-License-Identifier: Apache-2.0
#include "simple/simple_tokenizers.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <limits>
#include <string_view>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>
#include <millrace/formats/detail/sha256.hpp>

#include "unicode/unicode_classes.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

class byte_level_encoder final : public encoder {
 public:
  std::optional<encode_fault> encode(std::string_view text, id_buffer& ids) override {
    // Use a counted loop and pointers that do not alias, so that compilers vectorize the
    // conversion.
    const char* const bytes = text.data();
    const std::size_t size = text.size();
    std::int32_t* __restrict out = ids.room(size);
    for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<unsigned char>(bytes[i]);
    ids.add(size);
    return std::nullopt;
  }

  std::optional<encode_fault> encode_part_with_offsets(const text_part& part, id_buffer& ids,
                                                       std::vector<byte_span>& spans) override {
    for (std::size_t at = 0; at < part.text.size();) {
      const std::size_t size = code_point_at(part.text, at).size_bytes;
      spans.resize(spans.size() + size, {at, at + size});
      at += size;
    }
    return encode(part.text, ids);
  }
};

}  // namespace

std::unique_ptr<encoder> byte_level_tokenizer::make_encoder(std::size_t) const {
  return std::make_unique<byte_level_encoder>();
}

std::string byte_level_tokenizer::decode(std::span<const std::int64_t> ids) const {
  std::string text;
  text.reserve(ids.size());
  for (const std::int64_t id : ids) {
    if (id >= 0 && id < 256) {
      text += static_cast<char>(id);
    } else {
      text += replacement_character;
    }
  }
  return text;
}

std::optional<formats::token_texts> byte_level_tokenizer::token_texts() const {
  formats::token_texts all;
  for (int id = 0; id < 256; ++id) all.add(std::string(1, static_cast<char>(id)));
  all.end(replacement_character);
  return all;
}

std::size_t byte_level_tokenizer::last_cut(std::string_view text) const {
  return text.size() < 2 ? 0 : character_before(text, text.size());
}

std::string byte_level_tokenizer::fingerprint() const {
  return formats::sha256_hex("type ByteLevelTokenizer\n");
}

namespace {

constexpr std::int64_t max_vocab_size = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t max_digits = 4300;  // maximum that Python's int() converts

// The value of Python's int() for a piece, or std::nullopt if int() raises an exception. A number
// that is too large for any vocabulary becomes a large value, but never wraps around.
std::optional<std::int64_t> python_int(std::string_view piece) {
  std::size_t at = 0;
  const auto skip_space = [&] {
    while (at < piece.size()) {
      const code_point point = code_point_at(piece, at);
      if (class_of(point.value) != char_class::space) break;
      at += point.size_bytes;
    }
  };
  const auto next_is = [&](char c) { return at < piece.size() && piece[at] == c; };

  skip_space();
  const bool negative = next_is('-');
  if (negative || next_is('+')) ++at;

  std::int64_t magnitude = 0;
  std::size_t digits = 0;
  for (bool may_separate = false; at < piece.size();) {
    if (piece[at] == '_') {
      if (!may_separate) return std::nullopt;
      may_separate = false;
      ++at;
      continue;
    }
    const code_point point = code_point_at(piece, at);
    const int value = decimal_value(point.value);
    if (value < 0) break;
    magnitude = std::min<std::int64_t>(magnitude * 10 + value, max_vocab_size);
    may_separate = true;
    ++digits;
    at += point.size_bytes;
  }
  if (digits == 0 || digits > max_digits || piece[at - 1] == '_') return std::nullopt;
  skip_space();
  if (at != piece.size()) return std::nullopt;
  return negative ? -magnitude : magnitude;
}

class null_encoder final : public encoder {
 public:
  explicit null_encoder(std::int64_t vocab_size) : vocab_size_(vocab_size) {}

  std::optional<encode_fault> encode(std::string_view text, id_buffer& ids) override {
    return encode_from(0, text, ids);
  }

  std::optional<encode_fault> encode_part(const text_part& part, id_buffer& ids) override {
    return encode_from(part.is_first ? 0 : 1, part.text, ids);
  }

  std::optional<encode_fault> encode_part_with_offsets(const text_part& part, id_buffer& ids,
                                                       std::vector<byte_span>& spans) override {
    const std::size_t ids_before = ids.size();
    const std::size_t spans_before = spans.size();
    auto fault = encode_part(part, ids);
    if (fault) {
      ids.truncate(ids_before);
      return fault;
    }
    std::size_t begin = part.is_first ? 0 : 1;
    while (spans.size() - spans_before < ids.size() - ids_before) {
      const std::size_t end = std::min(part.text.find(' ', begin), part.text.size());
      spans.push_back({begin, end});
      begin = end + 1;
    }
    return std::nullopt;
  }

 private:
  std::optional<encode_fault> encode_from(std::size_t begin, std::string_view text,
                                          id_buffer& ids) const {
    for (;;) {
      const std::size_t end = std::min(text.find(' ', begin), text.size());
      const std::string_view piece = text.substr(begin, end - begin);
      const std::optional<std::int64_t> id = python_int(piece);
      if (!id)
        return encode_fault{begin, "expected an integer, found " + formats::in_quotes(piece)};
      if (*id < 0 || *id >= vocab_size_) {
        return encode_fault{begin, "id " + formats::in_quotes(piece) +
                                       " is outside the vocabulary, 0.." +
                                       std::to_string(vocab_size_ - 1)};
      }
      ids.push_back(static_cast<std::int32_t>(*id));
      if (end == text.size()) return std::nullopt;
      begin = end + 1;
    }
  }

  std::int64_t vocab_size_;
};

}  // namespace

null_tokenizer::null_tokenizer(std::int64_t vocab_size, std::optional<std::int64_t> eod)
    : vocab_size_(vocab_size), eod_(eod.value_or(vocab_size - 1)) {
  if (vocab_size < 1 || vocab_size > max_vocab_size) {
    throw config_error("--vocab-size " + std::to_string(vocab_size) + ": expected 1.." +
                       std::to_string(max_vocab_size));
  }
  if (eod_ < 0 || eod_ >= vocab_size_) {
    throw config_error("--null-tokenizer-eod-id " + std::to_string(eod_) + ": expected 0.." +
                       std::to_string(vocab_size_ - 1));
  }
}

std::unique_ptr<encoder> null_tokenizer::make_encoder(std::size_t) const {
  return std::make_unique<null_encoder>(vocab_size_);
}

std::optional<std::int32_t> null_tokenizer::eod() const noexcept {
  return static_cast<std::int32_t>(eod_);
}

std::string null_tokenizer::decode(std::span<const std::int64_t> ids) const {
  std::string text;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) text += ' ';
    if (ids[i] >= 0 && ids[i] < vocab_size_) {
      text += std::to_string(ids[i]);
    } else {
      text += replacement_character;
    }
  }
  return text;
}

std::optional<formats::token_texts> null_tokenizer::token_texts() const {
  if (vocab_size_ > std::int64_t{1} << 22) return std::nullopt;
  formats::token_texts all;
  all.start = formats::token_texts::first_rule::first_token;
  for (std::int64_t id = 0; id < vocab_size_; ++id) {
    const std::string number = std::to_string(id);
    all.add(' ' + number, number, 0);
  }
  all.end(' ' + std::string(replacement_character), replacement_character);
  return all;
}

std::size_t null_tokenizer::last_cut(std::string_view text) const {
  const std::size_t space = text.rfind(' ');
  return space == text.npos ? 0 : space;
}

std::string null_tokenizer::fingerprint() const {
  return formats::sha256_hex("type NullTokenizer\nvocab_size " + std::to_string(vocab_size_) +
                             "\neod " + std::to_string(eod_) + "\nunicode " + unicode_version +
                             "\n");
}

}  // namespace millrace::tokenizer::detail
