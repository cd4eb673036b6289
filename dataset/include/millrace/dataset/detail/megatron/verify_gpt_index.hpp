// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <millrace/dataset/detail/megatron/gpt_index_view.hpp>
#include <millrace/dataset/detail/megatron/gpt_plan.hpp>
#include <millrace/dataset/detail/megatron/length_column.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Looks at every entry of an index (formats/spec/megatron_cache.md, "The arrays"):
///
/// - document index: each sequence once an epoch, a separate last epoch apart;
/// - sample index: row j as the walk of all sequences has it, to the last token;
/// - shuffle index: each sample once, those of a separate last epoch last.
///
/// So nothing of it is damaged but by another order: which of all shuffles it holds, only a build
/// would tell. O(entries + samples), 4 bytes a sequence of memory and a bit a sample.
///
/// @param lengths  of all sequences of the `.idx`
/// @pre the sizes of `index` are those of `plan`
/// @throws format_error  the first entry that is not so, with its file and byte.
MILLRACE_EXPORT void verify_gpt_index(const gpt_plan& plan, length_column lengths,
                                      const gpt_index_view& index);

/// Whether samples have an extra token for the last label, by the first row of a sample index that
/// tells: where a sample begins with a sequence, row j is at its first token with one, and behind
/// the last token of the sequence before without. Nothing if no row tells: then both are the same.
///
/// @pre as verify_gpt_index
/// @throws format_error  a row is of no entry, or an entry of no sequence.
MILLRACE_EXPORT std::optional<bool> has_extra_token(const gpt_plan& plan, length_column lengths,
                                                    const gpt_index_view& index);

}  // namespace millrace::dataset
