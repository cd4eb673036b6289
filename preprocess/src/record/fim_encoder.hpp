// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <millrace/dataset/detail/megatron/numpy_random.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "input/input_plan.hpp"
#include "record/fim_options.hpp"

namespace millrace::preprocess {

/// The options of a run, the ids of its tokens, and the seeds of its records. Specification:
/// formats/spec/meta.md, "Fill in the middle".
///
/// Immutable, so any number of threads may share it.
class fim_plan {
 public:
  /// @throws config_error  a token is not in the vocabulary, or two of them are the same.
  fim_plan(const fim_options& options, const tokenizer::tokenizer& tokenizer,
           std::span<const input_file> inputs);

  /// The seed of a record. It depends only on `--fim-seed`, the name of the input and the place of
  /// the record in it, so it is the same for any workers, tasks and interruptions.
  ///
  /// @param input  index of the input
  /// @param begin  offset of the record in the decompressed text, or the row
  std::uint64_t seed_of(std::size_t input, std::uint64_t begin) const noexcept;

  const fim_options& options() const noexcept { return options_; }
  std::int32_t prefix_id() const noexcept { return prefix_; }
  std::int32_t middle_id() const noexcept { return middle_; }
  std::int32_t suffix_id() const noexcept { return suffix_; }
  std::int32_t split_id() const noexcept { return split_; }  ///< only if there is a split token

 private:
  fim_options options_;
  std::int32_t prefix_;
  std::int32_t middle_;
  std::int32_t suffix_;
  std::int32_t split_ = 0;
  std::vector<std::uint64_t> hashes_;  // one per input
};

/// Encodes texts, some of which it permutes. Makes the same draws and permutations as GPTFIMDataset
/// of megatron-core, but cuts the original text and not decoded tokens. Use from one thread.
class fim_encoder {
 public:
  /// @param plan, encoder  must outlive this object
  fim_encoder(const fim_plan& plan, tokenizer::encoder& encoder);

  /// Number of generators that prepare() seeds in about the time of one.
  static constexpr std::size_t most_seeds = 4;

  /// Seeds the generators of the next records, so that begin() need not do it.
  ///
  /// @param seeds  1 to most_seeds
  void prepare(std::span<const std::uint64_t> seeds);
  bool is_prepared(std::uint64_t seed) const noexcept;

  /// Begins the texts of one key of a record: their draws are the first ones of the record.
  ///
  /// @param seed  the seed_of() the record
  void begin(std::uint64_t seed);

  /// Appends the ids of the next text of the key. Ids that the tokenizer's template puts around a
  /// text are around the whole permuted text. An empty text takes no draws.
  ///
  /// @return as tokenizer::encoder::encode; the offset is one in `text`.
  /// @pre begin() was called
  std::optional<tokenizer::encode_fault> encode(std::string_view text, tokenizer::id_buffer& ids);

  /// Number of split tokens in texts so far whose ids encode() wrote itself.
  std::int64_t split_tokens_found() const noexcept { return split_tokens_; }

 private:
  /// A permutation: where the middle and the suffix begin, in bytes, and the order of the parts.
  struct cut {
    std::size_t middle = 0;
    std::size_t suffix = 0;
    bool is_spm = false;
  };

  std::optional<cut> draw_cut(std::string_view text, double rate);
  std::optional<tokenizer::encode_fault> encode_fragments(std::string_view text,
                                                          tokenizer::id_buffer& ids);
  std::optional<tokenizer::encode_fault> encode_fragment(std::string_view text, std::size_t begin,
                                                         std::size_t end,
                                                         tokenizer::id_buffer& ids);
  std::optional<tokenizer::encode_fault> encode_cut(std::string_view text, const cut& at,
                                                    tokenizer::id_buffer& ids);
  std::optional<tokenizer::encode_fault> encode_piece(std::string_view text, std::size_t begin,
                                                      std::size_t end, tokenizer::id_buffer& ids);

  const fim_plan& plan_;
  tokenizer::encoder& encoder_;
  std::vector<std::int32_t> ids_before_;  // of the tokenizer's template, before a text
  std::vector<std::int32_t> ids_after_;   // of the template, after a text
  std::vector<std::uint64_t> seeds_;      // of `prepared_`
  std::array<dataset::numpy_random, most_seeds> prepared_;
  dataset::numpy_random random_{0};  // of the current record, after the draws so far
  std::int64_t split_tokens_ = 0;
};

/// Returns the byte offset of character `index` (a code point) of `text`.
///
/// @param characters  number of characters of `text`
/// @pre `text` is valid UTF-8, and index <= characters
std::size_t byte_of_character(std::string_view text, std::size_t characters, std::size_t index);

/// Returns the number of characters (code points) of `text`, which is valid UTF-8.
std::size_t character_count(std::string_view text) noexcept;

}  // namespace millrace::preprocess
