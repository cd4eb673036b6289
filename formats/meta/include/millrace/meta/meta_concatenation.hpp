// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <millrace/formats/detail/src_code.hpp>
#include <millrace/meta/dataset_meta.hpp>

namespace millrace::formats {

/// The meta of parts put one behind the other: of consecutive tasks of one run, or of whole
/// datasets. All tasks of a run give what one process would have written.
///
/// Two tasks' extents of one input become one, where the second begins in the middle of it. Counts
/// and sizes are added. A sidecar is there if all parts have it; the root of `P.sum` depends on
/// bytes that are not seen here, so it is left empty for the caller to fill in.
///
/// @throws config_error  there are no parts; they differ in a flag, the tokenizer or the dtype; a
///                       task is missing, there twice or out of order; their shares or extents do
///                       not meet; a sum exceeds 2^63 - 1. Parts are counted from 1 in the message.
dataset_meta concatenate(std::span<const dataset_meta> parts);

/// What turns places in a part's `P.src` into those in that of the whole.
struct part_shift {
  std::uint32_t inputs_before = 0;  ///< to add to each input
  std::int64_t lines_before = 0;    ///< to add to each line of the part's first input

  /// @throws config_error  a line exceeds 2^63 - 1.
  source_place apply(source_place place) const;
};

/// One for each part. The bytes of places count from the start of the file, in a part too.
/// @throws config_error  as concatenate()
std::vector<part_shift> part_shifts(std::span<const dataset_meta> parts);

}  // namespace millrace::formats
