// SPDX-License-Identifier: Apache-2.0
#include "record/fim_encoder.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <millrace/dataset/detail/instant/order_keys.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>
#include <millrace/tokenizer/detail/special_ids.hpp>

namespace millrace::preprocess {
namespace {

using tokenizer::encode_fault;
using tokenizer::id_buffer;

std::int32_t id_of_token(const tokenizer::tokenizer& tokenizer, const char* flag,
                         const std::string& token) {
  const std::vector<std::int32_t> ids = tokenizer::ids_of_token(tokenizer, token);
  if (ids.size() == 1) return ids.front();
  const std::string quoted = formats::in_quotes(token);
  if (ids.empty()) {
    throw config_error(fmt::format(
        "--fim-rate: {} is not a token of this tokenizer; pass one of its tokens with {}", quoted,
        flag));
  }
  throw config_error(
      fmt::format("{} {} is the text of two tokens, {} and {}; pass one that is unique", flag,
                  quoted, ids[0], ids[1]));
}

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> settings_of(const fim_options& options) {
  std::vector<std::pair<std::string, std::string>> settings = {
      {"--fim-rate", fmt::format("{}", options.rate)},
      {"--fim-spm-rate", fmt::format("{}", options.spm_rate)},
      {"--fim-seed", std::to_string(options.seed)},
      {"--fim-prefix-token", options.prefix_token},
      {"--fim-middle-token", options.middle_token},
      {"--fim-suffix-token", options.suffix_token}};
  if (!options.split_token.empty()) {
    settings.emplace_back("--fim-split-sample", options.split_token);
    settings.emplace_back("--fim-fragment-rate", fmt::format("{}", options.fragment_rate));
  }
  if (!options.no_prefix.empty()) settings.emplace_back("--fim-no-prefix", options.no_prefix);
  return settings;
}

fim_plan::fim_plan(const fim_options& options, const tokenizer::tokenizer& tokenizer,
                   std::span<const input_file> inputs)
    : options_(options),
      prefix_(id_of_token(tokenizer, "--fim-prefix-token", options.prefix_token)),
      middle_(id_of_token(tokenizer, "--fim-middle-token", options.middle_token)),
      suffix_(id_of_token(tokenizer, "--fim-suffix-token", options.suffix_token)) {
  std::vector<std::int32_t> all = {prefix_, middle_, suffix_};
  if (!options.split_token.empty()) {
    split_ = id_of_token(tokenizer, "--fim-split-sample", options.split_token);
    all.push_back(split_);
  }
  std::ranges::sort(all);
  if (std::ranges::adjacent_find(all) != all.end()) {
    throw config_error(
        "--fim-rate: --fim-prefix-token, --fim-middle-token, --fim-suffix-token and "
        "--fim-split-sample must be different tokens");
  }
  constexpr std::uint64_t fim = 0x6d6966;  // the bytes of "fim", little-endian
  const std::uint64_t of_seed = dataset::absorb(dataset::mix64(fim), options.seed);
  for (const input_file& file : inputs) {
    hashes_.push_back(dataset::absorb(of_seed, dataset::name_hash(display_path(file).string())));
  }
}

std::uint64_t fim_plan::seed_of(std::size_t input, std::uint64_t begin) const noexcept {
  return dataset::draw(hashes_[input], begin);
}

fim_encoder::fim_encoder(const fim_plan& plan, tokenizer::encoder& encoder)
    : plan_(plan),
      encoder_(encoder),
      prepared_{dataset::numpy_random(0), dataset::numpy_random(0), dataset::numpy_random(0),
                dataset::numpy_random(0)} {
  const auto ids_of = [&](const tokenizer::text_part& part) {
    id_buffer ids;
    (void)encoder_.encode_part(part, ids);
    return std::vector<std::int32_t>(ids.ids().begin(), ids.ids().end());
  };
  ids_before_ = ids_of({.text = "", .is_first = true, .is_last = false});
  ids_after_ = ids_of({.text = "", .is_first = false, .is_last = true});
}

void fim_encoder::prepare(std::span<const std::uint64_t> seeds) {
  assert(!seeds.empty() && seeds.size() <= most_seeds);
  seeds_.assign(seeds.begin(), seeds.end());
  std::array<std::array<std::uint32_t, 2>, most_seeds> halves{};
  std::array<std::span<const std::uint32_t>, most_seeds> keys;
  for (std::size_t i = 0; i < most_seeds; ++i) {
    const std::uint64_t seed = seeds[std::min(i, seeds.size() - 1)];
    halves[i] = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
    keys[i] = halves[i];
  }
  dataset::numpy_random::seed(prepared_, keys);
}

bool fim_encoder::is_prepared(std::uint64_t seed) const noexcept {
  return std::ranges::find(seeds_, seed) != seeds_.end();
}

void fim_encoder::begin(std::uint64_t seed) {
  if (!is_prepared(seed)) prepare({&seed, 1});
  const auto at = std::ranges::find(seeds_, seed) - seeds_.begin();
  random_ = prepared_[static_cast<std::size_t>(at)];
}

std::optional<encode_fault> fim_encoder::encode(std::string_view text, id_buffer& ids) {
  if (text.empty()) return encoder_.encode(text, ids);
  const fim_options& options = plan_.options();
  const bool is_split = !options.split_token.empty() && text.find(options.split_token) != text.npos;
  std::optional<cut> at;
  if (is_split) {
    if (!random_.binomial(options.rate)) return encoder_.encode(text, ids);
  } else {
    at = draw_cut(text, options.rate);
    if (!at) return encoder_.encode(text, ids);
  }
  ids.append(ids_before_);
  if (auto fault = is_split ? encode_fragments(text, ids) : encode_cut(text, *at, ids)) {
    return fault;
  }
  ids.append(ids_after_);
  return std::nullopt;
}

// The draws are those of megatron-core, in the same order.
std::optional<fim_encoder::cut> fim_encoder::draw_cut(std::string_view text, double rate) {
  const fim_options& options = plan_.options();
  if (!random_.binomial(rate)) return std::nullopt;
  if (!options.no_prefix.empty() && text.starts_with(options.no_prefix)) return std::nullopt;
  const std::size_t characters = character_count(text);
  const std::size_t first = random_.interval(characters);
  const std::size_t second = random_.interval(characters);
  return cut{.middle = byte_of_character(text, characters, std::min(first, second)),
             .suffix = byte_of_character(text, characters, std::max(first, second)),
             .is_spm = random_.binomial(options.spm_rate)};
}

// An empty fragment vanishes with the split token after it, as in megatron-core. Only the last
// fragment may be empty.
std::optional<encode_fault> fim_encoder::encode_fragments(std::string_view text, id_buffer& ids) {
  const std::string& split = plan_.options().split_token;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find(split, begin)) != text.npos;
       begin = end + split.size()) {
    if (end == begin) continue;
    if (auto fault = encode_fragment(text, begin, end, ids)) return fault;
    ids.push_back(plan_.split_id());
    ++split_tokens_;
  }
  return encode_fragment(text, begin, text.size(), ids);
}

std::optional<encode_fault> fim_encoder::encode_fragment(std::string_view text, std::size_t begin,
                                                         std::size_t end, id_buffer& ids) {
  const std::string_view fragment = text.substr(begin, end - begin);
  const auto at = draw_cut(fragment, plan_.options().fragment_rate);
  auto fault =
      at ? encode_cut(fragment, *at, ids) : encode_piece(fragment, 0, fragment.size(), ids);
  if (fault) fault->offset_bytes += begin;
  return fault;
}

std::optional<encode_fault> fim_encoder::encode_cut(std::string_view text, const cut& at,
                                                    id_buffer& ids) {
  const auto prefix = [&] { return encode_piece(text, 0, at.middle, ids); };
  const auto middle = [&] { return encode_piece(text, at.middle, at.suffix, ids); };
  const auto suffix = [&] { return encode_piece(text, at.suffix, text.size(), ids); };
  ids.push_back(plan_.prefix_id());
  if (!at.is_spm) {
    if (auto fault = prefix()) return fault;
  }
  ids.push_back(plan_.suffix_id());
  if (auto fault = suffix()) return fault;
  ids.push_back(plan_.middle_id());
  if (at.is_spm) {
    if (auto fault = prefix()) return fault;
  }
  return middle();
}

std::optional<encode_fault> fim_encoder::encode_piece(std::string_view text, std::size_t begin,
                                                      std::size_t end, id_buffer& ids) {
  auto fault =
      encoder_.encode_part({.text = text.substr(begin, end - begin), .with_template = false}, ids);
  if (fault) fault->offset_bytes += begin;
  return fault;
}

std::size_t character_count(std::string_view text) noexcept {
  std::size_t count = 0;
  for (const char byte : text) count += static_cast<std::size_t>(begins_character(byte));
  return count;
}

std::size_t byte_of_character(std::string_view text, std::size_t characters, std::size_t index) {
  assert(index <= characters);
  if (index == characters) return text.size();
  if (characters == text.size()) return index;  // ASCII
  // Count whole blocks first, because compilers vectorize that.
  constexpr std::size_t block = 256;
  std::size_t at = 0;
  while (text.size() - at > block) {
    const std::size_t found = character_count(text.substr(at, block));
    if (found > index) break;
    index -= found;
    at += block;
  }
  for (;; ++at) {
    if (begins_character(text[at]) && index-- == 0) return at;
  }
}

}  // namespace millrace::preprocess
