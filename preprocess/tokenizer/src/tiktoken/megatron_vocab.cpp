// SPDX-License-Identifier: Apache-2.0
#include "tiktoken/megatron_vocab.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <unordered_set>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>

#include "json/json_place.hpp"
#include "text/base64.hpp"
#include "tiktoken/ranked_tokens.hpp"

namespace millrace::tokenizer::detail {
namespace {

namespace dom = simdjson::dom;

constexpr const char* expected_object =
    "expected an object of \"rank\", \"token_bytes\" and \"token_str\" alone";

// Reads the bytes of an entry and checks the entry. Returns a description of what is wrong with it,
// or an empty string.
std::string read_entry(const dom::element& entry, std::size_t place, std::string& bytes) {
  dom::object object;
  if (entry.get(object) != simdjson::SUCCESS || object.size() != 3) return expected_object;
  dom::element rank;
  std::string_view spelled;
  if (object["rank"].get(rank) != simdjson::SUCCESS ||
      object["token_bytes"].get(spelled) != simdjson::SUCCESS ||
      object["token_str"].error() != simdjson::SUCCESS) {
    return expected_object;
  }
  std::uint64_t number = 0;
  if (rank.get(number) != simdjson::SUCCESS || number != place) {
    return "expected rank " + std::to_string(place) + ", the place in the list";
  }
  if (!decode_base64(spelled, bytes))
    return "expected base64, found " + formats::in_quotes(spelled);
  if (place < 256 && (bytes.size() != 1 || static_cast<unsigned char>(bytes[0]) != place)) {
    return "expected the byte " + std::to_string(place) + ", found " + formats::in_quotes(bytes) +
           ": the first 256 tokens are the bytes";
  }
  return {};
}

dom::array parse_list(dom::parser& parser, std::string_view json) {
  dom::element document;
  if (const auto error = parser.parse(simdjson::padded_string(json)).get(document)) {
    throw format_error(json_end(json), std::string("not JSON: ") + simdjson::error_message(error));
  }
  dom::array list;
  if (document.get(list) != simdjson::SUCCESS) {
    throw format_error(0, "expected a JSON list of tokens");
  }
  return list;
}

}  // namespace

void parse_megatron_vocab(std::string_view json, std::int32_t first_id, std::int32_t end_id,
                          ranked_tokens& tokens) {
  dom::parser parser;
  std::string bytes;
  std::size_t place = 0;
  tokens.tokens.reserve(json.size());
  for (const dom::element entry : parse_list(parser, json)) {
    const auto id = first_id + static_cast<std::int64_t>(place);
    if (id >= end_id) return;
    std::string fault = read_entry(entry, place, bytes);
    if (fault.empty()) fault = tokens.add(static_cast<std::int32_t>(id), bytes);
    if (!fault.empty()) {
      throw format_error(json_place(json, {&place, 1}),
                         "token " + std::to_string(place) + ": " + fault);
    }
    ++place;
  }
  if (first_id + static_cast<std::int64_t>(place) < end_id) {
    throw format_error(json.size(), "the file has " + std::to_string(place) +
                                        " tokens, fewer than the " +
                                        std::to_string(end_id - first_id) +
                                        " that --vocab-size leaves besides the special tokens");
  }
}

namespace {

constexpr std::array usual = {"<unk>", "<s>", "</s>", "<mask>", "<pad>", "<cls>", "<sep>"};
constexpr std::int64_t usual_vocab_size = 131072;
constexpr std::int64_t usual_special_tokens = 1000;

}  // namespace

megatron_layout megatron_layout_of(const tokenizer_options& options) {
  megatron_layout layout;
  layout.vocab_size = options.vocab_size.value_or(usual_vocab_size);
  const std::int64_t count = options.tiktoken_num_special_tokens.value_or(usual_special_tokens);
  layout.special_tokens = options.special_tokens;
  if (layout.special_tokens.empty()) layout.special_tokens.assign(usual.begin(), usual.end());

  for (const char* token : usual) {
    if (std::ranges::find(layout.special_tokens, token) == layout.special_tokens.end()) {
      throw config_error(std::string("--tokenizer-special-tokens lacks ") + token +
                         ", which TikTokenizer requires; add it");
    }
  }
  if (layout.vocab_size < 2 || layout.vocab_size > ranked_tokens::max_id + std::int64_t{1}) {
    throw config_error("--vocab-size " + std::to_string(layout.vocab_size) + ": expected 2.." +
                       std::to_string(ranked_tokens::max_id + std::int64_t{1}));
  }
  const auto named = static_cast<std::int64_t>(layout.special_tokens.size());
  if (count < named || count >= layout.vocab_size) {
    throw config_error(
        "--tiktoken-num-special-tokens " + std::to_string(count) + ": expected " +
        std::to_string(named) + ".." + std::to_string(layout.vocab_size - 1) +
        ", at least the tokens of --tokenizer-special-tokens and fewer than --vocab-size");
  }
  for (std::int64_t id = named; id < count; ++id) {
    layout.special_tokens.push_back("<SPECIAL_" + std::to_string(id) + ">");
  }
  return layout;
}

}  // namespace millrace::tokenizer::detail
