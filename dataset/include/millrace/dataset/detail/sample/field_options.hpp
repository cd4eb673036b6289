// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace millrace::dataset {

/// An id that no token has, for tokenizers that lack a special token.
inline constexpr std::int64_t no_token = std::numeric_limits<std::int64_t>::min();

/// Options that determine how the fields of a sample are made from its text. They are the options
/// of Megatron's GPTDatasetConfig, with the same defaults. Document ends are found by token value
/// (`eod`).
struct field_options {
  bool extra_token = true;            ///< a text has seq_len + 1 tokens, not seq_len
  bool reset_position_ids = false;    ///< positions restart at 0 after each eod
  bool reset_attention_mask = false;  ///< no attention across an eod
  bool eod_mask_loss = false;         ///< no loss where the input is eod
  std::int64_t eod = no_token;
  std::int64_t pad = -1;  ///< see `pad_id`
};

/// Returns the pad id of a dataset, chosen like Megatron's GPTDataset. This is the tokenizer's pad
/// id, unless a special token has the same id. In that case it is -1, which no token has as its id.
/// If the tokenizer's pad id is used, every token of the dataset with this id counts as padding:
/// input 0, label 0, no loss.
///
/// @param pad              the tokenizer's pad id, or nullopt if it has none. Megatron
///                         distinguishes two kinds of tokenizers without a pad id. With one of
///                         these kinds, Megatron fails when it has to pad. Here, both kinds give
///                         -1.
/// @param special_tokens   all special tokens except the pad token. If the tokenizer does not list
///                         its special tokens: eos and eod
/// @param allow_ambiguous  if true, uses the tokenizer's pad id even if it is also the id of a
///                         special token; labels with this id then get no loss
inline std::int64_t pad_id(std::optional<std::int64_t> pad,
                           std::span<const std::int64_t> special_tokens,
                           bool allow_ambiguous = false) noexcept {
  if (!pad) return -1;
  const bool ambiguous = std::ranges::find(special_tokens, *pad) != special_tokens.end();
  return ambiguous && !allow_ambiguous ? -1 : *pad;
}

}  // namespace millrace::dataset
