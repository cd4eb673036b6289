// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "merge/merge.hpp"

namespace millrace::preprocess {

/// Like merge(), but writes the documents of all inputs in an order determined by `seed`: document
/// j of the output is document `permute(j)` of the concatenated inputs. Section 3 of
/// formats/spec/instant_order.md defines `permute`. Here, its tag is `document`, its name is empty
/// and its epoch is 0.
///
/// Sequences stay in their documents. `P.src` is also permuted, and `P.sum` is recomputed. The
/// option `shuffle_documents` in `P.meta` is the seed. `P.bad` is not merged, because its lines
/// belong to no document. The inputs must be complete runs, not only some tasks of a run.
///
/// Every token is read twice and written twice, in long sequential transfers. Memory use is bounded
/// (see shuffle_spill). While the shuffle runs, it needs twice the disk space of the output. It
/// checks and reserves this space before it copies the first document.
///
/// @throws config_error, io_error, format_error  as merge(); config_error also if the inputs are
///                                               only some tasks of a run.
merge_summary merge_shuffled(const merge_options& options, std::uint64_t seed);

}  // namespace millrace::preprocess
