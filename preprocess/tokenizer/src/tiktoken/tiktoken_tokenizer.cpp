// SPDX-License-Identifier: Apache-2.0
#include "tiktoken/tiktoken_tokenizer.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>
#include <millrace/formats/detail/sha256.hpp>
#include <millrace/io/file_mapping.hpp>

#include "bpe/byte_bpe_engine.hpp"
#include "core/composed_tokenizer.hpp"
#include "tiktoken/megatron_vocab.hpp"
#include "tiktoken/ranked_tokens.hpp"
#include "tiktoken/special_tables.hpp"
#include "unicode/unicode_classes.hpp"

namespace millrace::tokenizer::detail {
namespace {

// Real files have about ten megabytes. A larger file is a mistake by the user. Reading it would
// take many times its size in memory.
constexpr std::size_t max_file_bytes = std::size_t{1} << 30;

// The contents of a `.tiktoken` or a `.vocab.json` file.
struct tiktoken_vocabulary {
  ranked_tokens ranked;
  std::vector<special_token> specials;
  std::int64_t size = 0;
  std::string eod;  // empty if there is none
  std::string pattern;
  bool specials_in_text = false;  // special tokens in texts become ids
};

void refuse(bool given, const char* flag) {
  if (given) {
    throw config_error(std::string("--tokenizer-type TikTokenizer takes ") + flag +
                       " only with a .vocab.json");
  }
}

std::vector<special_token> numbered(const std::vector<std::string>& contents, std::int64_t first) {
  std::vector<special_token> tokens;
  std::unordered_set<std::string_view> known;
  for (const std::string& content : contents) {
    if (content.empty()) throw config_error("--tokenizer-special-tokens: a token is empty");
    if (!known.insert(content).second) {
      throw config_error("special token " + formats::in_quotes(content) + " occurs twice");
    }
    tokens.push_back({content, static_cast<std::int32_t>(first++)});
  }
  return tokens;
}

// Returns the special tokens of the public vocabulary `v.pattern`. Throws format_error if the file
// does not have as many ranks as that vocabulary.
std::vector<special_token> known_specials(const tiktoken_vocabulary& v, special_table table,
                                          std::size_t size_bytes) {
  const token_table& ranks = v.ranked.tokens;
  if (ranks.count() != table.ranks) {
    throw format_error(size_bytes, "the file has " + std::to_string(ranks.count()) +
                                       " ranks, expected the " + std::to_string(table.ranks) +
                                       " of " + v.pattern +
                                       "; for another vocabulary, pass its special tokens with "
                                       "--tokenizer-special-tokens");
  }
  for (const special_token& special : table.tokens) {
    if (ranks.has(special.id)) {
      throw format_error(size_bytes, "rank " + std::to_string(special.id) +
                                         " is in the file, but "
                                         "in " +
                                         v.pattern + " it is the special token " + special.content);
    }
  }
  return std::move(table.tokens);
}

void read_ranks(std::string_view text, const tokenizer_options& options, tiktoken_vocabulary& v) {
  v.pattern = options.tiktoken_pattern;
  if (v.pattern.ends_with("_base")) v.pattern.resize(v.pattern.size() - 5);  // e.g. cl100k_base
  refuse(options.vocab_size.has_value(), "--vocab-size");
  refuse(options.tiktoken_num_special_tokens.has_value(), "--tiktoken-num-special-tokens");
  parse_rank_file(text, v.ranked);
  if (v.pattern.empty()) {
    throw config_error(
        "--tiktoken-pattern is required for a .tiktoken file: the name of its vocabulary, one of " +
        tiktoken_pattern_names());
  }
  special_table table = special_table_of(v.pattern);
  if (!options.special_tokens.empty()) {
    v.specials = numbered(options.special_tokens, v.ranked.tokens.end_id());
  } else if (!table.tokens.empty()) {
    v.eod = table.eod;
    v.specials = known_specials(v, std::move(table), text.size());
  }
  v.size = v.ranked.tokens.end_id();
  for (const special_token& special : v.specials) {
    v.size = std::max<std::int64_t>(v.size, special.id + 1);
  }
}

void read_megatron(std::string_view json, const tokenizer_options& options,
                   tiktoken_vocabulary& v) {
  v.pattern = options.tiktoken_pattern.empty() ? "v2" : options.tiktoken_pattern;
  if (v.pattern != "v1" && v.pattern != "v2") {
    throw config_error("--tiktoken-pattern " + v.pattern + ": a .vocab.json takes v1 or v2");
  }
  const megatron_layout layout = megatron_layout_of(options);
  v.specials = numbered(layout.special_tokens, 0);
  v.size = layout.vocab_size;
  v.eod = "</s>";
  v.specials_in_text = true;
  parse_megatron_vocab(json, static_cast<std::int32_t>(layout.special_tokens.size()),
                       static_cast<std::int32_t>(layout.vocab_size), v.ranked);
}

// The id of the token whose text is `content`, if any.
std::optional<std::int32_t> id_of(const tiktoken_vocabulary& v, std::string_view content) {
  const auto special = std::ranges::find(v.specials, content, &special_token::content);
  return special != v.specials.end() ? std::optional(special->id) : v.ranked.find(content);
}

std::optional<std::int32_t> eod_of(const tiktoken_vocabulary& v, const tokenizer_options& options) {
  const std::string& content = options.eod_token.empty() ? v.eod : options.eod_token;
  if (content.empty()) return std::nullopt;
  const auto id = id_of(v, content);
  if (!id) {
    throw config_error("--eod-token " + formats::in_quotes(content) +
                       " is not the text of any token");
  }
  return id;
}

bool become_ids(const tiktoken_vocabulary& v, special_tokens_in_text policy) {
  if (policy == special_tokens_in_text::as_reference) return v.specials_in_text;
  return policy != special_tokens_in_text::encode_as_text;
}

// Refuses a special token that begins with another special token. tiktoken matches the token that
// comes first in its regex alternation, but the order of that alternation is undefined.
void refuse_prefixes(const std::vector<special_token>& specials) {
  std::vector<std::string_view> contents;
  contents.reserve(specials.size());
  for (const special_token& special : specials) contents.push_back(special.content);
  std::ranges::sort(contents);
  for (std::size_t i = 1; i < contents.size(); ++i) {
    if (contents[i].starts_with(contents[i - 1])) {
      throw config_error("special token " + formats::in_quotes(contents[i]) + " begins with " +
                         formats::in_quotes(contents[i - 1]) +
                         ", which is also a special token, so it is undefined which one a text "
                         "contains; pass --special-tokens-in-text encode-as-text");
    }
  }
}

added_token_finder finder_of(const std::vector<special_token>& specials) {
  refuse_prefixes(specials);
  std::vector<added_token> tokens;
  for (const special_token& special : specials) {
    added_token token;
    token.content = special.content;
    token.id = special.id;
    tokens.push_back(std::move(token));
  }
  return added_token_finder(std::move(tokens));
}

// Returns a text that contains everything that determines ids. Strings have a length prefix, so
// that two different lists never give the same text.
std::string identity_of(const tiktoken_vocabulary& v, std::string_view file, bool finds_specials,
                        bool refuses_specials, std::optional<std::int32_t> eod) {
  std::string identity = "type TikTokenizer\nmodel " + formats::sha256_hex(file) + "\npattern " +
                         v.pattern + "\nsize " + std::to_string(v.size) + "\n";
  for (const special_token& special : v.specials) {
    identity += "special " + std::to_string(special.id) + " " +
                std::to_string(special.content.size()) + " " + special.content + "\n";
  }
  identity += std::string("in_text ") +
              (!finds_specials    ? "text"
               : refuses_specials ? "error"
                                  : "ids") +
              "\n";
  if (eod) identity += "eod " + std::to_string(*eod) + "\n";
  return identity + "unicode " + unicode_version + "\n";
}

// Moves the tokens of `v` into the engine, to save memory during loading.
tokenizer_parts parts_of(tiktoken_vocabulary& v, std::string_view file,
                         const tokenizer_options& options) {
  tokenizer_parts parts;
  parts.vocab_size = v.size;
  parts.eod = eod_of(v, options);
  const bool finds = become_ids(v, options.in_text);
  parts.special_tokens_are_faults = options.in_text == special_tokens_in_text::error;
  if (finds) parts.raw_tokens = finder_of(v.specials);

  byte_bpe_vocabulary bpe;
  bpe.byte_ids = v.ranked.byte_ids(file.size());
  bpe.merges = merges_of_ranked(v.ranked, bpe.byte_ids);
  bpe.tokens = v.ranked.take();
  bpe.whole_words_first = true;

  token_table all = bpe.tokens;
  for (const special_token& special : v.specials) {
    if (!all.has(special.id)) all.add(special.id, special.content);
  }
  parts.decoder = std::make_unique<byte_detokenizer>(std::move(all));
  parts.engine = make_byte_bpe_engine(std::move(bpe), tiktoken_pattern(v.pattern));
  parts.fingerprint =
      formats::sha256_hex(identity_of(v, file, finds, parts.special_tokens_are_faults, parts.eod));
  return parts;
}

std::unique_ptr<tokenizer> tokenizer_of(std::string_view file, const tokenizer_options& options) {
  tiktoken_vocabulary v;
  const std::size_t first = file.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (file[first] == '[' || file[first] == '{')) {
    read_megatron(file, options, v);
  } else {
    read_ranks(file, options, v);
  }
  return std::make_unique<composed_tokenizer>(parts_of(v, file, options));
}

}  // namespace

std::unique_ptr<tokenizer> make_tiktoken_tokenizer(const tokenizer_options& options) {
  const io::file_mapping file(options.model);
  const auto bytes = file.bytes();
  try {
    if (bytes.size() > max_file_bytes) {
      throw format_error(max_file_bytes, "the file is too large for a tokenizer's");
    }
    return tokenizer_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, options);
  } catch (const format_error& e) {
    throw e.in(options.model);
  }
}

namespace {

struct named_pattern {
  std::string_view name;
  pattern cut;
};

// The patterns of the vocabularies in special_tables.hpp, then Megatron's two patterns.
constexpr std::array named_patterns = {
    named_pattern{"r50k", pattern::r50k},      named_pattern{"p50k", pattern::r50k},
    named_pattern{"p50k_edit", pattern::r50k}, named_pattern{"cl100k", pattern::cl100k},
    named_pattern{"o200k", pattern::o200k},    named_pattern{"o200k_harmony", pattern::o200k},
    named_pattern{"llama3", pattern::llama3},  named_pattern{"llama4", pattern::o200k},
    named_pattern{"qwen2", pattern::qwen2},    named_pattern{"kimi", pattern::kimi},
    named_pattern{"v1", pattern::megatron_v1}, named_pattern{"v2", pattern::tekken},
};

}  // namespace

pattern tiktoken_pattern(std::string_view name) {
  for (const named_pattern& known : named_patterns) {
    if (known.name == name) return known.cut;
  }
  throw config_error("--tiktoken-pattern '" + std::string(name) + "': unknown, expected one of " +
                     tiktoken_pattern_names());
}

std::string tiktoken_pattern_names() {
  std::string names;
  for (const named_pattern& known : named_patterns) {
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  return names;
}

}  // namespace millrace::tokenizer::detail
