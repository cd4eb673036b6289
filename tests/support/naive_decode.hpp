// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/formats/detail/utf8.hpp>
#include <millrace/formats/token_texts.hpp>

namespace millrace::test {

/// The text of a document, and where the text of each token ends.
struct naive_text {
  std::string text;
  std::vector<std::size_t> ends;
};

/// Decodes a document as the comments of formats::token_texts say, one token after another.
inline naive_text naive_decode(const formats::token_texts& texts,
                               std::span<const std::int64_t> ids) {
  using formats::token_texts;
  std::vector<std::string> parts;
  bool start = texts.start != token_texts::first_rule::none;
  bool any_text = false;
  for (std::size_t i = 0; i < ids.size();) {
    const auto index = [&](std::size_t at) { return texts.index_of(ids[at]); };
    std::size_t end = i;
    std::string run;
    while (end < ids.size() && (texts.flags[index(end)] & token_texts::is_byte) != 0)
      run += texts.text(texts.inner[index(end++)]);
    if (end > i) {
      bool valid = true;
      std::vector<std::string> made;
      for (std::size_t at = 0; at < run.size();) {
        const std::size_t size = formats::utf8_sequence_bytes(std::string_view(run).substr(at));
        valid = valid && size > 0;
        if (size == 0) made.emplace_back("\xEF\xBF\xBD");
        for (std::size_t k = 0; k < size; ++k) made.emplace_back(1, run[at + k]);
        at += size == 0 ? 1 : size;
      }
      if (!valid && texts.runs == token_texts::byte_rule::run) {
        made.assign(run.size(), "\xEF\xBF\xBD");
      }
      parts.insert(parts.end(), made.begin(), made.end());
      any_text = true;
      start = false;
      i = end;
      continue;
    }
    parts.emplace_back(texts.text((start ? texts.first : texts.inner)[index(i)]));
    any_text = any_text || !parts.back().empty();
    if (texts.start == token_texts::first_rule::first_token || any_text ||
        (texts.flags[index(i)] & token_texts::ends_start) != 0) {
      start = false;
    }
    ++i;
  }
  std::string whole;
  for (const std::string& part : parts) whole += part;
  std::size_t drop = 0;
  for (std::size_t i = 0; i < texts.strip_times; ++i) {
    if (whole.compare(drop, texts.strip.size(), texts.strip) == 0)
      drop += texts.strip.size();
    else
      break;
  }
  naive_text result;
  result.text = whole.substr(drop);
  std::size_t at = 0;
  for (const std::string& part : parts) {
    at += part.size();
    result.ends.push_back(at < drop ? 0 : at - drop);
  }
  return result;
}

}  // namespace millrace::test
