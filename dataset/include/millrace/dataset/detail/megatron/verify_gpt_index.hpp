// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/megatron/gpt_index_view.hpp>
#include <millrace/dataset/detail/megatron/gpt_plan.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Checks every entry of an index (formats/spec/megatron_cache.md, "The arrays"):
///
/// - document index: each sequence occurs once per epoch, and a separate last epoch is at the end;
/// - sample index: each row is exactly the one that a walk over all sequences gives;
/// - shuffle index: each sample occurs once, and a separate last epoch is at the end.
///
/// The check cannot detect an index that holds a different but valid order. To find out whether an
/// index holds the right shuffle, build it again. Takes O(entries + samples) time, 4 bytes of
/// memory per sequence and one bit per sample.
///
/// @param lengths  lengths of all sequences of the `.idx`
/// @pre the sizes of `index` are those of `plan`
/// @throws format_error  an entry is wrong; the message names the first one, with its file and
///                       byte.
MILLRACE_EXPORT void verify_gpt_index(const gpt_plan& plan, length_column lengths,
                                      const gpt_index_view& index);

/// Returns true if samples have an extra token for the last label. To decide, finds a row of the
/// sample index that differs between the two cases: a row j whose sample begins at the start of a
/// sequence. With an extra token, row j points to the first token of that sequence. Without one,
/// row j points past the last token of the preceding sequence. Returns nullopt if there is no such
/// row; the index is then the same in both cases.
///
/// @pre as `verify_gpt_index`
/// @throws format_error  a row points to an entry that does not exist, or an entry points to a
///                       sequence that does not exist.
MILLRACE_EXPORT std::optional<bool> has_extra_token(const gpt_plan& plan, length_column lengths,
                                                    const gpt_index_view& index);

}  // namespace millrace::dataset
