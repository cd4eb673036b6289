// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <millrace/dataset/detail/megatron/gpt_index_view.hpp>
#include <millrace/dataset/detail/megatron/gpt_plan.hpp>
#include <millrace/dataset/detail/megatron/length_column.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Checks every entry of an index (formats/spec/megatron_cache.md, "The arrays"):
///
/// - document index: each sequence once per epoch, with a separate last epoch at the end;
/// - sample index: each row equals that of a walk over all sequences, to the token;
/// - shuffle index: each sample once, those of a separate last epoch last.
///
/// The only damage this cannot detect is a different valid order: only a rebuild could check which
/// shuffle the index holds. Takes O(entries + samples) time, 4 bytes of memory per sequence and one
/// bit per sample.
///
/// @param lengths  lengths of all sequences of the `.idx`
/// @pre the sizes of `index` are those of `plan`
/// @throws format_error  an entry is wrong; names the first one, with its file and byte.
MILLRACE_EXPORT void verify_gpt_index(const gpt_plan& plan, length_column lengths,
                                      const gpt_index_view& index);

/// Returns whether samples have an extra token for the last label, judging by the first row of the
/// sample index that shows it. Where a sample begins at the start of a sequence, row j points to
/// the first token of that sequence if there is an extra token, else past the last token of the
/// preceding sequence. Returns nothing if no row shows it; both indices are then the same.
///
/// @pre as verify_gpt_index
/// @throws format_error  a row points to no entry, or an entry to no sequence.
MILLRACE_EXPORT std::optional<bool> has_extra_token(const gpt_plan& plan, length_column lengths,
                                                    const gpt_index_view& index);

}  // namespace millrace::dataset
