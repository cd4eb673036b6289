// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

/// Encodes texts part by part. A tokenizer decides where a text may be cut without changing the
/// ids.
namespace millrace::test {

/// Cuts each text into as many parts as possible and encodes the parts one after another.
class part_encoder {
 public:
  explicit part_encoder(const tokenizer::tokenizer& tokenizer) : tokenizer_(tokenizer) {
    for (auto& each : encoders_) each = tokenizer.make_encoder();
  }

  /// Returns the ids of `text`. Asks `tokenizer::last_cut` only about prefixes of at least `least`
  /// bytes.
  std::vector<std::int32_t> encode(std::string_view text, std::size_t least) {
    tokenizer::id_buffer ids;
    bool first = true;
    for (;;) {
      const std::size_t cut = next_cut(text, least);
      const bool last = cut == 0;
      const tokenizer::text_part part = {last ? text : text.substr(0, cut), first, last};
      if (const auto fault = encoder().encode_part(part, ids)) {
        throw std::runtime_error(fault->what);
      }
      if (last) return {ids.ids().begin(), ids.ids().end()};
      ++cuts_;
      text.remove_prefix(cut);
      first = false;
    }
  }

  /// Number of cuts made so far.
  std::size_t cuts() const noexcept { return cuts_; }

 private:
  static bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

  std::size_t next_cut(std::string_view text, std::size_t least) const {
    for (std::size_t size = least; size < text.size(); ++size) {
      if (is_continuation(text[size])) continue;
      const std::size_t cut = tokenizer_.last_cut(text.substr(0, size));
      if (cut >= size && cut != 0) throw std::logic_error("a cut that is none");
      if (cut != 0) return cut;
    }
    return 0;
  }

  // Returns the encoder for the next part. If the tokenizer requires the same encoder for all
  // parts, returns the encoder of the previous part. Otherwise, returns another encoder.
  tokenizer::encoder& encoder() {
    if (!tokenizer_.parts_in_order()) next_ = (next_ + 1) % encoders_.size();
    return *encoders_[next_];
  }

  const tokenizer::tokenizer& tokenizer_;
  std::array<std::unique_ptr<tokenizer::encoder>, 2> encoders_;
  std::size_t next_ = 0;
  std::size_t cuts_ = 0;
};

/// Generates texts with characters that tokenizers treat in special ways.
class odd_texts {
 public:
  explicit odd_texts(std::uint64_t seed) : random_(seed) {}

  std::string next() {
    std::string text;
    const std::size_t style = random_() % 6;
    for (std::size_t n = random_() % 60; n > 0; --n) {
      text += pick(style == 0 ? words_ : style == 1 ? east_ : style == 2 ? signs_ : all());
      if (style < 2 && random_() % 2 == 0) text += ' ';
    }
    return text;
  }

 private:
  using strings = std::vector<std::string>;

  const std::string& pick(const strings& from) { return from[random_() % from.size()]; }
  const strings& all() {
    const std::array<const strings*, 5> kinds = {&words_, &east_, &signs_, &spaces_, &specials_};
    return *kinds[random_() % kinds.size()];
  }

  const strings words_ = {"a",         "the",
                          "The",       "HTTPServer",
                          "camelCase", "don't",
                          "it's",      "'ll",
                          "I'VE",      "we'",
                          "'",         "'s",
                          "s",         "t",
                          "re",        "x1",
                          "1x",        "12345",
                          "1",         "22",
                          "3.14",      "naïve",
                          "Straße",    "ÉCOLE",
                          "привет",    "Й",
                          "й",         "Ёж",
                          "ΑΒΓς",      "Σ",
                          "İ",         "שלום",
                          "مرحبا",     "हिन्दी",
                          "ไทย",       "a\u0301",
                          "\u0301",    "e\u0301\u0302",
                          "ﬁ",         "Å",
                          "ſ",         "'ſ",
                          "lower",     "UPPER",
                          "aB",        "Ab"};
  const strings east_ = {"中",     "文",   "日本語", "。",         "、",       "！",     "・",
                         "ー",     "かな", "カナ",   "が",         "か\u3099", "\u3099", "ﾊﾞ",
                         "한국어", "「",   "」",     "(",          "，",       "０",     "〇",
                         "々",     "龍",   "\u3000", "\U00020000", "一",       "二"};
  const strings signs_ = {".",      ",",
                          "!",      "?",
                          "-",      "--",
                          "_",      "/",
                          "\\",     "//",
                          "(",      ")",
                          "[",      "]",
                          "{",      "}",
                          "<",      ">",
                          "|",      "=",
                          "+",      "*",
                          "&",      "%",
                          "$",      "#",
                          "@",      "~",
                          "`",      "^",
                          "\"",     ":",
                          ";",      "…",
                          "—",      "’",
                          "“",      "”",
                          "€",      "©",
                          "½",      "²",
                          "Ⅷ",      "①",
                          "😀",      "👨‍👩‍👧",
                          "\u200d", "\u200b",
                          "\u00ad", "\ufe0f",
                          "\x01",   "\x7f",
                          "\x1c",

                          "\u0338", "=\u0338",
                          "\u2581", "\ufeff",
                          "\ufffd"};
  const strings spaces_ = {" ",      " ",    " ",       "  ",     "   ",    "        ",
                           "\n",     "\n\n", "\r\n",    "\r",     "\t",     "\t\t",
                           " \n",    "\n ",  " \n \n ", "\u00a0", "\u3000", "\u2003",
                           "\u2028", "\x0b", "\x0c",    "\u0085", "\u1680"};
  const strings specials_ = {"<|endoftext|>",
                             "<s>",
                             "</s>",
                             "<unk>",
                             "[CLS]",
                             "[SEP]",
                             "[MASK]",
                             "<|begin_of_text|>",
                             "<|im_start|>",
                             "<|im_end|>",
                             "<｜end▁of▁sentence｜>",
                             "<extra_id_0>",
                             "<",
                             "|",
                             "<|",
                             "|>",
                             "[",
                             "]",
                             "<0x41>",
                             "<pad>"};

  std::mt19937_64 random_;
};

}  // namespace millrace::test
