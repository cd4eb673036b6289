// SPDX-License-Identifier: Apache-2.0
#include "gpt2/gpt2_tokenizer.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>
#include <millrace/formats/detail/sha256.hpp>

#include "bpe/byte_bpe_engine.hpp"
#include "core/composed_tokenizer.hpp"
#include "gpt2/gpt2_files.hpp"
#include "split/splitters.hpp"
#include "text/byte_alphabet.hpp"
#include "text/text_file.hpp"
#include "unicode/unicode_classes.hpp"

namespace millrace::tokenizer::detail {
namespace {

constexpr std::string_view end_of_text = "<|endoftext|>";

bool occurs_in_utf8(std::size_t byte) {
  return byte != 0xC0 && byte != 0xC1 && byte < 0xF5;
}

std::array<std::int32_t, 256> ids_of_bytes(const token_ids& ids, std::size_t size_bytes) {
  std::array<std::int32_t, 256> result;
  result.fill(-1);
  for (std::size_t byte = 0; byte < result.size(); ++byte) {
    const std::string spelled = spelling_of(std::string(1, static_cast<char>(byte)));
    const auto found = ids.find(spelled);
    if (found != ids.end()) {
      result[byte] = found->second;
    } else if (occurs_in_utf8(byte)) {
      throw format_error(size_bytes,
                         "the vocabulary has no token for the single byte " + std::to_string(byte));
    }
  }
  return result;
}

// Returns the id of `<|endoftext|>`. Adds it to `entries` if it is missing.
std::int32_t end_of_text_of(std::vector<vocab_entry>& entries, std::size_t size_bytes) {
  const auto present = std::ranges::find(entries, end_of_text, &vocab_entry::spelled);
  if (present != entries.end()) return present->id;
  const auto id = static_cast<std::int32_t>(entries.size());
  const auto place = std::ranges::lower_bound(entries, id, {}, &vocab_entry::id);
  if (place != entries.end() && place->id == id) {
    throw format_error(size_bytes, "the vocabulary lacks " + std::string(end_of_text) +
                                       ", and the id it would get, " + std::to_string(id) +
                                       ", belongs to another token");
  }
  entries.insert(place, {std::string(end_of_text), id});
  return id;
}

// Assigns new ids to the special tokens that are not keys of the vocabulary. Each new id is one
// more than the highest id of an added token so far, but at least the number of entries.
std::vector<added_token> add_specials(std::vector<vocab_entry>& entries,
                                      std::int32_t end_of_text_id, std::size_t entry_count,
                                      const gpt2_options& options, std::size_t size_bytes) {
  std::vector<added_token> added = {{std::string(end_of_text), end_of_text_id}};
  std::int32_t highest = end_of_text_id;
  for (const std::string& token : options.special_tokens) {
    if (token.empty()) throw config_error("--tokenizer-special-tokens: a token is empty");
    if (token == end_of_text) continue;
    if (std::ranges::find(added, token, &added_token::content) != added.end()) {
      throw config_error("special token " + formats::in_quotes(token) + " occurs twice");
    }
    const auto present = std::ranges::find(entries, token, &vocab_entry::spelled);
    if (present != entries.end()) {
      added.push_back({token, present->id});
    } else {
      const auto id = std::max(highest + 1, static_cast<std::int32_t>(entry_count));
      const auto place = std::ranges::lower_bound(entries, id, {}, &vocab_entry::id);
      if (place != entries.end() && place->id == id) {
        throw format_error(size_bytes, "the id that special token " + formats::in_quotes(token) +
                                           " would get, " + std::to_string(id) +
                                           ", belongs to another token");
      }
      entries.insert(place, {token, id});
      added.push_back({token, id});
    }
    highest = std::max(highest, added.back().id);
  }
  return added;
}

struct gpt2_vocabulary {
  std::vector<vocab_entry> entries;
  std::vector<added_token> added;  // a subset of the entries
  token_ids ids;                   // ids of the entries
  std::array<std::int32_t, 256> byte_ids{};
  std::int32_t end_of_text_id = 0;
};

gpt2_vocabulary read_vocabulary(std::string_view json, const gpt2_options& options) {
  gpt2_vocabulary v;
  v.entries = parse_vocab_json(json);
  const std::size_t entry_count = v.entries.size();
  v.end_of_text_id = end_of_text_of(v.entries, json.size());
  v.added = add_specials(v.entries, v.end_of_text_id, entry_count, options, json.size());
  v.ids.reserve(v.entries.size());
  for (const vocab_entry& entry : v.entries) v.ids.emplace(entry.spelled, entry.id);
  v.byte_ids = ids_of_bytes(v.ids, json.size());
  return v;
}

}  // namespace

std::unique_ptr<tokenizer> make_gpt2_tokenizer(const std::filesystem::path& vocab_file,
                                               const std::filesystem::path& merge_file,
                                               const gpt2_options& options) {
  std::string identity = "type GPT2BPETokenizer\n";
  const gpt2_vocabulary v = with_text_of(vocab_file, [&](std::string_view text) {
    identity += "vocab_file " + formats::sha256_hex(text) + "\n";
    return read_vocabulary(text, options);
  });
  byte_bpe_vocabulary bpe;
  bpe.byte_ids = v.byte_ids;
  bpe.merges = with_text_of(merge_file, [&](std::string_view text) {
    identity += "merge_file " + formats::sha256_hex(text) + "\n";
    return parse_merges_txt(text, v.ids);
  });
  for (const added_token& token : v.added) {
    identity += "special " + std::to_string(token.id) + " " + std::to_string(token.content.size()) +
                " " + token.content + "\n";
  }
  const bool allowed = options.in_text == special_tokens_in_text::allow ||
                       options.in_text == special_tokens_in_text::as_reference;
  identity +=
      "in_text " +
      std::to_string(static_cast<int>(allowed ? special_tokens_in_text::allow : options.in_text)) +
      "\n";
  identity += std::string("unicode ") + unicode_version + "\n";

  token_table all;
  for (const vocab_entry& entry : v.entries) {
    // A special token with a character outside the byte alphabet represents its own text.
    const auto bytes = bytes_of(entry.spelled);
    all.add(entry.id, bytes.value_or(entry.spelled));
    if (bytes && entry.id != v.end_of_text_id) bpe.tokens.add(entry.id, *bytes);
  }
  tokenizer_parts parts;
  parts.vocab_size = all.end_id();
  parts.eod = v.end_of_text_id;
  if (options.in_text != special_tokens_in_text::encode_as_text) {
    parts.raw_tokens = added_token_finder(v.added);
  }
  parts.special_tokens_are_faults = options.in_text == special_tokens_in_text::error;
  parts.engine = make_byte_bpe_engine(std::move(bpe), pattern::r50k);
  parts.decoder = std::make_unique<byte_detokenizer>(std::move(all));
  parts.fingerprint = formats::sha256_hex(identity);
  return std::make_unique<composed_tokenizer>(std::move(parts));
}

}  // namespace millrace::tokenizer::detail
