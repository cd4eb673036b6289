// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace millrace::dataset {

/// An id that no token has: for a tokenizer that lacks the one in question.
inline constexpr std::int64_t no_token = std::numeric_limits<std::int64_t>::min();

/// How a text becomes what a trainer takes: the options of Megatron's GPTDatasetConfig, by token
/// value and with Megatron's defaults.
struct field_options {
  bool extra_token = true;            ///< a text has seq_len + 1 tokens, else seq_len
  bool reset_position_ids = false;    ///< positions start anew behind each eod
  bool reset_attention_mask = false;  ///< no attention across an eod
  bool eod_mask_loss = false;         ///< no loss where the input is eod
  std::int64_t eod = no_token;
  std::int64_t pad = -1;  ///< see `pad_id`
};

/// The pad id that a dataset works with, as Megatron's GPTDataset chooses it: the tokenizer's own
/// if no special token has it too, else -1, an id that no token has. With an id of its own, every
/// token of the dataset that is equal to it counts as padding: input 0, label 0, no loss.
///
/// @param pad              of the tokenizer, if it has one. Megatron knows two ways of not having
///                         one and fails in one of them where it has to pad; here both give -1.
/// @param special_tokens   eos and eod, or all special tokens but pad where the tokenizer lists
///                         them
/// @param allow_ambiguous  keep a pad id that is a special token's: its labels get no loss
inline std::int64_t pad_id(std::optional<std::int64_t> pad,
                           std::span<const std::int64_t> special_tokens,
                           bool allow_ambiguous = false) noexcept {
  if (!pad) return -1;
  const bool ambiguous = std::ranges::find(special_tokens, *pad) != special_tokens.end();
  return ambiguous && !allow_ambiguous ? -1 : *pad;
}

}  // namespace millrace::dataset
