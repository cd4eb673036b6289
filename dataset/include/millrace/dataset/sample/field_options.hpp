// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

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

}  // namespace millrace::dataset
