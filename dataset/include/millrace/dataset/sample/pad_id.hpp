// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <millrace/export.hpp>

namespace millrace::dataset {

/// The pad id that a dataset works with, as Megatron's GPTDataset chooses it: the tokenizer's own
/// if no special token has it too, else -1, an id that no token has. With an id of its own, every
/// token of the dataset that is equal to it counts as padding: input 0, label 0, no loss.
///
/// @param pad              of the tokenizer, if it has one. Megatron knows two ways of not having
///                         one and fails in one of them where it has to pad; here both give -1.
/// @param special_tokens   eos and eod, or all special tokens but pad where the tokenizer lists
/// them
/// @param allow_ambiguous  keep a pad id that is a special token's: its labels get no loss
MILLRACE_EXPORT std::int64_t pad_id(std::optional<std::int64_t> pad,
                                    std::span<const std::int64_t> special_tokens,
                                    bool allow_ambiguous = false) noexcept;

}  // namespace millrace::dataset
