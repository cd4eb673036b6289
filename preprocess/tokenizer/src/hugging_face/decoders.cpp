// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/decoders.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>
#include <millrace/formats/detail/utf8.hpp>

#include "core/interfaces.hpp"
#include "hugging_face/read_components.hpp"
#include "text/byte_alphabet.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

using strings = std::vector<std::string>;

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  std::string result;
  std::size_t begin = 0;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, begin)) {
    result.append(text, begin, at - begin).append(to);
    begin = at + from.size();
  }
  if (begin == 0) return;
  result.append(text, begin);
  text = std::move(result);
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = formats::utf8_sequence_bytes(text.substr(at));
    if (size == 0) return false;
    at += size;
  }
  return true;
}

// Removes spaces before punctuation and contractions. For example, "Do n't" becomes "Don't".
void clean_up(std::string& text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> rules = {{
      {" .", "."},
      {" ?", "?"},
      {" !", "!"},
      {" ,", ","},
      {" ' ", "'"},
      {" n't", "n't"},
      {" 'm", "'m"},
      {" do not", " don't"},
      {" 's", "'s"},
      {" 've", "'ve"},
      {" 're", "'re"},
  }};
  for (const auto& [from, to] : rules) replace_all(text, from, to);
}

// decoder_step::describe for a step that treats each token alone.
bool describe_alone(const decoder_step& alone, described_tokens& tokens) {
  if (tokens.joined || !tokens.is_byte.empty()) return false;
  for (auto* const list : {&tokens.first, &tokens.inner}) {
    for (std::string& token : *list) {
      strings one = {std::move(token)};
      alone.apply(one);
      token = one.empty() ? std::string() : std::move(one.front());
    }
  }
  return true;
}

class join_step final : public decoder_step {
 public:
  explicit join_step(std::string between) : between_(std::move(between)) {}
  void apply(strings& tokens, growth_limit&) const override {
    std::string text;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i != 0) text += between_;
      text += tokens[i];
    }
    tokens.clear();
    tokens.push_back(std::move(text));
  }
  bool describe(described_tokens& tokens) const override {
    if (tokens.joined || (!tokens.is_byte.empty() && !between_.empty())) return false;
    for (std::string& token : tokens.inner) token.insert(0, between_);
    return tokens.joined = true;
  }

 private:
  std::string between_;
};

// Replaces bytes that are not UTF-8 with U+FFFD: one U+FFFD per truncated character, and one per
// other invalid byte.
std::string with_replacements(std::string_view bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::string_view rest = bytes.substr(at);
    if (const std::size_t size = formats::utf8_sequence_bytes(rest)) {
      text += rest.substr(0, size);
      at += size;
      continue;
    }
    // Find the longest prefix of `rest` that could be the beginning of a character.
    std::size_t cut = 1;
    for (const std::size_t kept : {std::size_t{2}, std::size_t{3}}) {
      const std::string whole = std::string(rest.substr(0, kept)).append("\x80\x80");
      if (rest.size() >= kept && formats::utf8_sequence_bytes(whole) > kept) cut = kept;
    }
    text += replacement_character;
    at += cut;
  }
  return text;
}

// Decodes the byte alphabet. If `replaces` is true (in a Sequence), replaces bytes that are not
// UTF-8. Otherwise, keeps these bytes.
class byte_level_step final : public decoder_step {
 public:
  explicit byte_level_step(bool replaces) : replaces_(replaces) {}
  void apply(strings& tokens, growth_limit&) const override {
    std::string text;
    for (const std::string& token : tokens) text += bytes_of(token).value_or(token);
    tokens.assign(1, replaces_ ? with_replacements(text) : std::move(text));
  }
  bool describe(described_tokens& tokens) const override {
    if (replaces_ || tokens.joined || !tokens.is_byte.empty()) return false;
    for (auto* const list : {&tokens.first, &tokens.inner}) {
      for (std::string& token : *list) token = bytes_of(token).value_or(token);
    }
    return tokens.joined = true;
  }

 private:
  bool replaces_;
};

class word_piece_step final : public decoder_step {
 public:
  word_piece_step(std::string prefix, bool cleans) : prefix_(std::move(prefix)), cleans_(cleans) {}
  void apply(strings& tokens, growth_limit&) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      change(tokens[i], i == 0);
    }
  }
  bool describe(described_tokens& tokens) const override {
    if (tokens.joined || !tokens.is_byte.empty()) return false;
    for (std::string& token : tokens.first) change(token, true);
    for (std::string& token : tokens.inner) change(token, false);
    return true;
  }

 private:
  void change(std::string& token, bool is_first) const {
    if (!is_first) {
      if (token.starts_with(prefix_)) {
        token.erase(0, prefix_.size());
      } else {
        token.insert(0, 1, ' ');
      }
    }
    if (cleans_) clean_up(token);
  }

  std::string prefix_;
  bool cleans_;
};

class metaspace_step final : public decoder_step {
 public:
  metaspace_step(std::string space, bool drops_first)
      : space_(std::move(space)), drops_first_(drops_first) {}
  void apply(strings& tokens, growth_limit&) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      replace_all(tokens[i], space_, i == 0 && drops_first_ ? "" : " ");
    }
  }
  bool describe(described_tokens& tokens) const override {
    if (tokens.joined || !tokens.is_byte.empty()) return false;
    for (std::string& token : tokens.first) replace_all(token, space_, drops_first_ ? "" : " ");
    for (std::string& token : tokens.inner) replace_all(token, space_, " ");
    return true;
  }

 private:
  std::string space_;
  bool drops_first_;
};

class suffix_step final : public decoder_step {
 public:
  explicit suffix_step(std::string suffix) : suffix_(std::move(suffix)) {}
  void apply(strings& tokens, growth_limit&) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      replace_all(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
    }
  }
  bool describe(described_tokens& /*tokens*/) const override {
    return false;  // the last token differs
  }

 private:
  std::string suffix_;
};

std::optional<char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  // Like Hugging Face, accept a plus sign: "+A" is 10.
  std::string_view digits = token.substr(3, 2);
  if (digits[0] == '+') digits.remove_prefix(1);
  unsigned value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return std::nullopt;
  return static_cast<char>(value);
}

class byte_fallback_step final : public decoder_step {
 public:
  void apply(strings& tokens, growth_limit&) const override {
    strings result;
    std::string bytes;
    const auto put_bytes = [&] {
      if (is_utf8(bytes)) {
        if (!bytes.empty()) result.push_back(bytes);
      } else {
        result.insert(result.end(), bytes.size(), std::string(replacement_character));
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = byte_of(token)) {
        bytes += *byte;
        continue;
      }
      put_bytes();
      result.push_back(std::move(token));
    }
    put_bytes();
    tokens = std::move(result);
  }
  bool describe(described_tokens& tokens) const override {
    if (tokens.joined || !tokens.is_byte.empty()) return false;
    tokens.is_byte.resize(tokens.inner.size());
    for (std::size_t i = 0; i < tokens.inner.size(); ++i) {
      const auto byte = byte_of(tokens.inner[i]);
      if (byte_of(tokens.first[i]) != byte) return false;
      tokens.is_byte[i] = byte.has_value();
      if (byte) tokens.first[i] = tokens.inner[i] = std::string(1, *byte);
    }
    return true;
  }
};

class strip_step final : public decoder_step {
 public:
  strip_step(std::string content, std::size_t start, std::size_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  void apply(strings& tokens, growth_limit&) const override {
    for (std::string& token : tokens) {
      std::size_t begin = 0;
      for (std::size_t i = 0; i < start_ && token.compare(begin, content_.size(), content_) == 0;) {
        begin += content_.size();
        ++i;
      }
      // As in Hugging Face, both counts apply to the whole token. So the count on the right may
      // include characters that are already stripped on the left.
      std::size_t end = token.size();
      for (std::size_t i = 0;
           i < stop_ && std::string_view(token).substr(0, end).ends_with(content_); ++i) {
        end -= content_.size();
      }
      token = begin < end ? token.substr(begin, end - begin) : std::string();
    }
  }
  bool describe(described_tokens& tokens) const override {
    if (!tokens.joined) return describe_alone(*this, tokens);
    if (stop_ != 0 || tokens.strip_times != 0 || content_.empty()) return false;
    tokens.strip = content_;
    tokens.strip_times = start_;
    return true;
  }

 private:
  std::string content_;  // one character
  std::size_t start_;
  std::size_t stop_;
};

class replace_step final : public decoder_step {
 public:
  explicit replace_step(std::unique_ptr<const normalizer> replace) : replace_(std::move(replace)) {}
  void apply(strings& tokens, growth_limit& limit) const override {
    std::size_t made = 0;
    for (std::string& token : tokens) {
      std::string buffer;
      const std::string_view replaced = replace_->normalize(token, buffer, limit);
      made += replaced.size();
      limit.expect(made);
      token = std::string(replaced);
    }
  }
  bool describe(described_tokens& tokens) const override { return describe_alone(*this, tokens); }

 private:
  std::unique_ptr<const normalizer> replace_;
};

class ctc_step final : public decoder_step {
 public:
  ctc_step(std::string pad, std::string delimiter, bool cleans)
      : pad_(std::move(pad)), delimiter_(std::move(delimiter)), cleans_(cleans) {}
  void apply(strings& tokens, growth_limit&) const override {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string& token : tokens) {
      replace_all(token, pad_, "");
      if (!cleans_) continue;
      clean_up(token);
      replace_all(token, delimiter_, " ");
    }
    std::erase(tokens, std::string());
  }
  bool describe(described_tokens& /*tokens*/) const override {
    return false;  // equal neighbors are one
  }

 private:
  std::string pad_;
  std::string delimiter_;
  bool cleans_;
};

class sequence_step final : public decoder_step {
 public:
  explicit sequence_step(std::vector<std::unique_ptr<const decoder_step>> steps)
      : steps_(std::move(steps)) {}
  void apply(strings& tokens, growth_limit& limit) const override {
    for (const auto& each : steps_) each->apply(tokens, limit);
  }
  bool describe(described_tokens& tokens) const override {
    return std::ranges::all_of(steps_, [&](const auto& each) { return each->describe(tokens); });
  }

 private:
  std::vector<std::unique_ptr<const decoder_step>> steps_;
};

std::string text_of(const json_node& decoder, const char* key) {
  const json_node value = decoder.at(key);
  return std::string(value.string(key));
}

std::size_t count_of(const json_node& decoder, const char* key) {
  const json_node value = decoder.at(key);
  return static_cast<std::size_t>(value.integer(key, std::int64_t{1} << 32));
}

// Creates a decoder step. Throws if its type is unknown.
std::unique_ptr<const decoder_step> make_step(const json_node& decoder, bool alone) {
  const std::string type = text_of(decoder, "type");
  if (type == "ByteLevel") return std::make_unique<byte_level_step>(!alone);
  if (type == "WordPiece") {
    return std::make_unique<word_piece_step>(text_of(decoder, "prefix"),
                                             decoder.flag("cleanup", true));
  }
  if (type == "Metaspace") {
    const auto scheme = decoder.text("prepend_scheme");
    const bool drops = scheme ? *scheme != "never" : decoder.flag("add_prefix_space", true);
    return std::make_unique<metaspace_step>(text_of(decoder, "replacement"), drops);
  }
  if (type == "BPEDecoder") return std::make_unique<suffix_step>(text_of(decoder, "suffix"));
  if (type == "ByteFallback") return std::make_unique<byte_fallback_step>();
  if (type == "Fuse") return std::make_unique<join_step>("");
  if (type == "Strip") {
    return std::make_unique<strip_step>(text_of(decoder, "content"), count_of(decoder, "start"),
                                        count_of(decoder, "stop"));
  }
  if (type == "Replace") return std::make_unique<replace_step>(read_normalizer(decoder, "decoder"));
  if (type == "CTC") {
    return std::make_unique<ctc_step>(text_of(decoder, "pad_token"),
                                      text_of(decoder, "word_delimiter_token"),
                                      decoder.flag("cleanup", true));
  }
  if (type != "Sequence") decoder.fail("the decoder " + formats::in_quotes(type) + " is unknown");
  std::vector<std::unique_ptr<const decoder_step>> steps;
  const json_node list = decoder.at("decoders");
  std::size_t index = 0;
  for (const simdjson::dom::element element : list.array("decoders")) {
    steps.push_back(make_step(json_node(list, element, index++), false));
  }
  return std::make_unique<sequence_step>(std::move(steps));
}

class chain_detokenizer final : public detokenizer {
 public:
  chain_detokenizer(token_table tokens, std::unique_ptr<const decoder_step> decoder)
      : tokens_(std::move(tokens)), decoder_(std::move(decoder)) {}

  std::string decode(std::span<const std::int64_t> ids) const override {
    strings tokens;
    tokens.reserve(ids.size());
    for (const std::int64_t id : ids) {
      tokens.emplace_back(tokens_.has(id) ? tokens_.bytes(id) : replacement_character);
    }
    decoder_->apply(tokens);
    std::string text;
    for (const std::string& token : tokens) text += token;
    return text;
  }
  std::optional<formats::token_texts> texts() const override;
  const token_table* tokens() const noexcept override { return &tokens_; }

 private:
  token_table tokens_;
  std::unique_ptr<const decoder_step> decoder_;
};

std::optional<formats::token_texts> chain_detokenizer::texts() const {
  described_tokens tokens;
  tokens.inner.reserve(static_cast<std::size_t>(tokens_.end_id()) + 1);
  for (std::int64_t id = 0; id <= tokens_.end_id(); ++id) {
    tokens.inner.emplace_back(tokens_.has(id) ? tokens_.bytes(id) : replacement_character);
  }
  tokens.first = tokens.inner;
  if (!decoder_->describe(tokens)) return std::nullopt;
  formats::token_texts all;
  if (tokens.first != tokens.inner) all.start = formats::token_texts::first_rule::first_token;
  if (!tokens.is_byte.empty()) all.runs = formats::token_texts::byte_rule::run;
  all.strip = std::move(tokens.strip);
  all.strip_times = tokens.strip_times;
  const std::size_t others = tokens.inner.size() - 1;
  for (std::size_t i = 0; i < others; ++i) {
    const bool is_byte = !tokens.is_byte.empty() && tokens.is_byte[i];
    all.add(tokens.inner[i], tokens.first[i], is_byte ? formats::token_texts::is_byte : 0);
  }
  all.end(tokens.inner[others], tokens.first[others]);
  return all;
}

}  // namespace

void decoder_step::apply(std::vector<std::string>& tokens) const {
  std::size_t size = 0;
  for (const std::string& token : tokens) size += token.size();
  growth_limit limit(size);
  apply(tokens, limit);
}

std::unique_ptr<const decoder_step> read_decoder(const json_node* decoder,
                                                 std::vector<std::string>& notes) {
  if (decoder == nullptr) return std::make_unique<join_step>(" ");
  try {
    return make_step(*decoder, true);
  } catch (const error& e) {  // encoding does not need the decoder
    notes.push_back("the decoder of the tokenizer is not supported: " + std::string(e.what()) +
                    ". The ids are correct; ids that are shown as text appear as their vocabulary "
                    "entries");
  }
  return std::make_unique<join_step>("");
}

std::unique_ptr<const detokenizer> make_chain_detokenizer(
    token_table tokens, std::unique_ptr<const decoder_step> decoder) {
  return std::make_unique<chain_detokenizer>(std::move(tokens), std::move(decoder));
}

}  // namespace millrace::tokenizer::detail
