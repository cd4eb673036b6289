// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "split/instruction_set.hpp"
#include "split/word_splitter.hpp"

namespace millrace::tokenizer::detail {

/// The patterns that are cut by hand, each named after the first tokenizer that had it. In the
/// Unicode version of unicode_classes.hpp.
enum class pattern : std::uint8_t {
  r50k,            ///< GPT-2, p50k, GPT-NeoX; also what a ByteLevel pre-tokenizer does by itself
  cl100k,          ///< GPT-4 as tiktoken has it: white space at the end of a text is one pretoken
  llama3,          ///< Llama 3, and GPT-4 as tokenizer.json files have it
  qwen2,           ///< as llama3, with each number by itself
  qwen35,          ///< as qwen2, with marks among the letters
  seed_coder,      ///< Seed Coder: as qwen2, newlines never with punctuation
  o200k,           ///< GPT-4o, gpt-oss, Llama 4: words end where the case changes
  tekken,          ///< as o200k without contractions, each number by itself; Megatron's v2
  megatron_v1,     ///< Megatron's TikTokenizer v1: as qwen2 without contractions
  kimi,            ///< Kimi K2: as o200k with Han apart
  deepseek_v3,     ///< DeepSeek V3 and R1: three splits, one within the other
  deepseek_coder,  ///< DeepSeek Coder: words, punctuation, Han and numbers cut out in turn
  bloom,           ///< BLOOM: what lies between white space and some punctuation
  starcoder,       ///< each number by itself, then r50k on what lies between
  digits_r50k,     ///< the same for tokenizer.json, whose Digits knows some numbers more
  bert,            ///< units of raw text for BERT: words, punctuation, each with a space before it
  bert_chinese,    ///< and each ideograph by itself
  white_space,     ///< what lies between white space, with a space before it
};

/// By its name on the command line, e.g. "o200k" or "qwen3.5"; several tokenizers that share a
/// pattern give it several names.
std::optional<pattern> pattern_named(std::string_view name) noexcept;

/// The engines that read a regex, which do not always agree on what it says: `\p{N}{1,3}+` takes
/// three numbers at most in one and any number of them in the other.
enum class regex_dialect : std::uint8_t {
  oniguruma,  ///< tokenizer.json
  rust,       ///< tiktoken
};

/// By the text of its regex, which has to be one that we know letter by letter. Nothing that merely
/// looks alike is taken: a regex without a pattern here is for a regex engine.
std::optional<pattern> pattern_of_regex(std::string_view regex,
                                        regex_dialect dialect = regex_dialect::oniguruma) noexcept;

/// The same for a sequence of splits, each of which isolates its matches within the pieces of the
/// one before.
std::optional<pattern> pattern_of_regexes(
    std::span<const std::string_view> regexes,
    regex_dialect dialect = regex_dialect::oniguruma) noexcept;

/// The same for splits behind which Digits isolates each number, as `tokenizer.json` files have it.
std::optional<pattern> pattern_of_regexes_and_digits(
    std::span<const std::string_view> regexes) noexcept;

/// Whatever the instruction set is, the ends are the same.
/// @pre can_run(set)
std::unique_ptr<const word_splitter> make_splitter(pattern pattern,
                                                   instruction_set set = best_instruction_set());

/// Splitters that cut 64 bytes at a time (windowed_splitter.hpp). On x86-64 only.
/// @pre the machine runs the instruction set
std::unique_ptr<const word_splitter> make_avx2_splitter(pattern pattern);
std::unique_ptr<const word_splitter> make_avx512_splitter(pattern pattern);

}  // namespace millrace::tokenizer::detail
