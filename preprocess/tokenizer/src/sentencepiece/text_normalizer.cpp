// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/text_normalizer.hpp"

#include <algorithm>
#include <utility>

#include <millrace/formats/detail/utf8.hpp>

#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {

text_normalizer::text_normalizer(const normalizer_spec& spec, bool whitespace_as_suffix,
                                 symbol_matcher symbols, space_form form)
    : symbols_(std::move(symbols)),
      add_dummy_prefix_(spec.add_dummy_prefix),
      remove_extra_whitespaces_(spec.remove_extra_whitespaces),
      whitespace_as_suffix_(whitespace_as_suffix) {
  if (!spec.charsmap.empty()) rules_ = charsmap(spec.charsmap, spec.charsmap_offset);
  if (spec.escape_whitespaces) {
    folds_symbol_ = form == space_form::blank;
    if (form == space_form::symbol) space_ = space_symbol;
  }
  for (unsigned c = 0; c < 0x80; ++c) {
    if (c == ' ' || symbols_.may_begin(static_cast<unsigned char>(c))) continue;
    const char one = static_cast<char>(c);
    bool plain = !rules_.find(std::string_view(&one, 1));
    for (unsigned next = 0; plain && next < 0x80; ++next) {
      const char two[] = {one, static_cast<char>(next)};
      plain = !rules_.has_prefix(std::string_view(two, 2));
    }
    plain_[c] = plain;
  }
}

// Size in bytes of the longest prefix that has no spaces and that normalization does not change.
std::size_t text_normalizer::plain_run(std::string_view text) const noexcept {
  std::size_t size = 0;
  while (size < text.size() && plain_[static_cast<unsigned char>(text[size])]) ++size;
  // Leave out the last character if a rule may combine it with the next character, e.g. a letter
  // with its accent.
  if (size != 0 && size < text.size() && static_cast<unsigned char>(text[size]) >= 0x80) --size;
  return size;
}

text_normalizer::step text_normalizer::next(std::string_view text) const noexcept {
  if (const std::size_t symbol = symbols_.match(text); symbol != 0) {
    return {text.substr(0, symbol), symbol};
  }
  if (const auto rule = rules_.find(text)) return {rule->replacement, rule->size_bytes};
  const std::size_t size = formats::utf8_sequence_bytes(text);
  if (size == 0) return {replacement_character, 1};
  return {text.substr(0, size), size};
}

void text_normalizer::append(std::string_view text, std::string& out) const {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') {
      out += space_;
    } else if (folds_symbol_ && text[i] == space_symbol[0] &&
               text.substr(i, space_symbol.size()) == space_symbol) {
      out += space_;
      i += space_symbol.size() - 1;
    } else {
      out += text[i];
    }
  }
}

void text_normalizer::strip_end(std::string& out) const {
  std::string_view rest = out;
  while (rest.ends_with(space_)) rest.remove_suffix(space_.size());
  out.resize(rest.size());
}

std::string_view text_normalizer::normalize(std::string_view text, std::string& buffer,
                                            growth_limit& limit) const {
  return normalize_part(text, {true, true}, buffer, limit);
}

std::string_view text_normalizer::normalize_part(std::string_view text, place where,
                                                 std::string& buffer, growth_limit& limit) const {
  limit.begin("normalization rules");
  buffer.clear();
  if (remove_extra_whitespaces_ && where.begins) {
    while (!text.empty()) {
      const step first = next(text);
      if (first.text != " ") break;
      text.remove_prefix(first.size_bytes);
    }
  }
  if (text.empty()) return buffer;
  if (add_dummy_prefix_ && !whitespace_as_suffix_ && where.begins) buffer += space_;
  append_normalized(text, remove_extra_whitespaces_ && where.begins, buffer, limit);
  if (remove_extra_whitespaces_ && where.ends) {
    strip_end(buffer);
  } else if (remove_extra_whitespaces_ && buffer.ends_with(space_)) {
    buffer.resize(buffer.size() - space_.size());
  }
  if (add_dummy_prefix_ && whitespace_as_suffix_ && where.ends) buffer += space_;
  return buffer;
}

void text_normalizer::normalize_places(std::string_view text, place where, std::string& out,
                                       std::vector<std::size_t>& places,
                                       growth_limit& limit) const {
  limit.begin("normalization rules");
  out.clear();
  places.clear();
  std::size_t at = 0;
  if (remove_extra_whitespaces_ && where.begins) {
    while (at < text.size()) {
      const step first = next(text.substr(at));
      if (first.text != " ") break;
      at += first.size_bytes;
    }
  }
  if (at == text.size()) return places.push_back(at);
  const auto put_space = [&] {
    out += space_;
    places.resize(out.size(), at);
  };
  if (add_dummy_prefix_ && !whitespace_as_suffix_ && where.begins) put_space();
  bool skips_spaces = remove_extra_whitespaces_ && where.begins;
  while (at < text.size()) {
    limit.expect(out.size());
    const step one = next(text.substr(at));
    std::string_view given = one.text;
    if (skips_spaces) {
      given.remove_prefix(std::min(given.find_first_not_of(' '), given.size()));
    }
    if (!given.empty()) {
      append(given, out);
      skips_spaces = remove_extra_whitespaces_ && given.ends_with(' ');
    }
    places.resize(out.size(), at);
    at += one.size_bytes;
  }
  if (remove_extra_whitespaces_) {
    strip_end(out);
    if (out.size() < places.size()) at = places[out.size()];
    places.resize(out.size());
  }
  if (add_dummy_prefix_ && whitespace_as_suffix_) put_space();
  places.push_back(at);
}

void text_normalizer::append_normalized(std::string_view text, bool skips_spaces, std::string& out,
                                        growth_limit& limit) const {
  while (!text.empty()) {
    limit.expect(out.size());
    if (const std::size_t plain = plain_run(text); plain != 0) {
      out += text.substr(0, plain);
      text.remove_prefix(plain);
      skips_spaces = false;
      continue;
    }
    const step one = next(text);
    std::string_view given = one.text;
    if (skips_spaces) {
      given.remove_prefix(std::min(given.find_first_not_of(' '), given.size()));
    }
    if (!given.empty()) {
      append(given, out);
      skips_spaces = remove_extra_whitespaces_ && given.ends_with(' ');
    }
    text.remove_prefix(one.size_bytes);
  }
}

}  // namespace millrace::tokenizer::detail
