// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "merge/merge.hpp"

namespace millrace::preprocess {

/// As merge(), but writes the documents of all inputs in an order that `seed` decides: document j
/// of the output is document permute(j) of the inputs put one behind the other, by
/// formats/spec/instant_order.md, section 3, with the tag `document`, an empty name and epoch 0.
///
/// Sequences stay in their documents. `P.src` goes along, `P.sum` is made anew, `P.meta` has the
/// seed among its options as `shuffle_documents`. `P.bad`, which belongs to no document, stays with
/// the inputs, which therefore are whole runs, not tasks of one.
///
/// Every token is read twice and written twice, in long runs; memory is bounded (see
/// shuffle_spill). While it runs, it takes the room of the output twice. It counts the room of all
/// files, and sets it aside, before it copies the first document.
///
/// @throws config_error, io_error, format_error  as merge(); also some tasks of a run.
merge_summary merge_shuffled(const merge_options& options, std::uint64_t seed);

}  // namespace millrace::preprocess
