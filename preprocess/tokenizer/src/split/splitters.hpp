// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "split/instruction_set.hpp"

namespace millrace::tokenizer::detail {

/// Splits a section into pretokens, which cover it without gaps. Immutable; threads may share it.
///
/// Each call returns a batch of ends, so the cost of the virtual call per pretoken is negligible.
/// The end of a pretoken depends only on the text after its beginning. Splitting can therefore
/// resume at the end of any pretoken.
class word_splitter {
 public:
  virtual ~word_splitter() = default;

  /// The room that a splitter needs for the ends of one window.
  static constexpr std::size_t room_for_window = 64;

  /// Writes at least one end of the pretokens that follow `begin`, unless the section ends there.
  /// May stop when `ends` has less room than room_for_window; so spans of less room are slow.
  /// Returns how many ends were written: 0 only at the end of the section.
  ///
  /// @param section  valid UTF-8; on invalid input the ends still advance and stay in bounds
  /// @pre `begin` is 0 or the end of a pretoken, and `ends` is not empty
  virtual std::size_t next_ends(std::string_view section, std::size_t begin,
                                std::span<std::size_t> ends) const noexcept = 0;
};

/// The patterns with a handwritten splitter. Each pattern is named after the first tokenizer that
/// used it. Patterns use the Unicode version of unicode_classes.hpp.
enum class pattern : std::uint8_t {
  r50k,            ///< GPT-2, p50k, GPT-NeoX; also the default of the ByteLevel pre-tokenizer
  cl100k,          ///< GPT-4 in tiktoken: white space at the end of a text is one pretoken
  llama3,          ///< Llama 3, and GPT-4 in tokenizer.json files
  qwen2,           ///< like llama3, but each number is its own pretoken
  qwen35,          ///< like qwen2, but marks count as letters
  seed_coder,      ///< Seed Coder: like qwen2, but punctuation never includes newlines
  o200k,           ///< GPT-4o, gpt-oss, Llama 4: words end where the case changes
  tekken,          ///< like o200k without contractions, numbers split one by one; Megatron's v2
  megatron_v1,     ///< Megatron's TikTokenizer v1: like qwen2, without contractions
  kimi,            ///< Kimi K2: like o200k, but Han is split off
  deepseek_v3,     ///< DeepSeek V3 and R1: three successive splits
  deepseek_coder,  ///< DeepSeek Coder: splits off words, punctuation, Han and numbers in turn
  bloom,           ///< BLOOM: splits at white space and some punctuation
  starcoder,       ///< each number is its own pretoken, then r50k on the rest
  digits_r50k,     ///< starcoder for tokenizer.json, whose Digits recognizes a few more numbers
  bert,            ///< units of raw text for BERT: words and punctuation, with a leading space
  bert_chinese,    ///< like bert, but each ideograph is its own unit
  white_space,     ///< splits at white space; units include a leading space
};

/// Finds a pattern by its command-line name, e.g. "o200k" or "qwen3.5". A pattern that several
/// tokenizers share has several names.
std::optional<pattern> pattern_named(std::string_view name) noexcept;

/// The regex engine for which a regex is written. Engines do not always agree: `\p{N}{1,3}+`
/// matches at most three numbers in Rust, but any number of them in Oniguruma.
enum class regex_dialect : std::uint8_t {
  oniguruma,  ///< tokenizer.json
  rust,       ///< tiktoken
};

/// Finds a pattern by its regex, which must be identical to a known spelling. Any other regex needs
/// a regex engine.
std::optional<pattern> pattern_of_regex(std::string_view regex,
                                        regex_dialect dialect = regex_dialect::oniguruma) noexcept;

/// Like pattern_of_regex, for a sequence of splits. Each split isolates its matches within the
/// pieces of the previous split.
std::optional<pattern> pattern_of_regexes(
    std::span<const std::string_view> regexes,
    regex_dialect dialect = regex_dialect::oniguruma) noexcept;

/// Like pattern_of_regexes, for splits followed by the pre-tokenizer Digits of `tokenizer.json`,
/// which isolates each number.
std::optional<pattern> pattern_of_regexes_and_digits(
    std::span<const std::string_view> regexes) noexcept;

/// Makes the splitter for `pattern`. Its output does not depend on the instruction set.
/// @pre can_run(set)
std::unique_ptr<const word_splitter> make_splitter(pattern pattern,
                                                   instruction_set set = best_instruction_set());

/// Splitters that process 64 bytes at a time (windowed_splitter.hpp), each for one architecture.
/// @pre the machine supports the instruction set
std::unique_ptr<const word_splitter> make_neon_splitter(pattern pattern);
std::unique_ptr<const word_splitter> make_avx2_splitter(pattern pattern);
std::unique_ptr<const word_splitter> make_avx512_splitter(pattern pattern);

}  // namespace millrace::tokenizer::detail
