// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <millrace/formats/detail/src_code.hpp>
#include <millrace/meta/dataset_meta.hpp>

namespace millrace::formats {

/// Returns the meta of a concatenation of parts. The parts are consecutive tasks of one run, or
/// whole datasets. If the parts are all tasks of a run, the result is the meta that a single
/// process would have written.
///
/// If a task begins in the middle of an input, its extent of that input is joined with the previous
/// task's extent. Counts and sizes are added up. A sidecar (`P.sum`, `P.src`) is recorded only if
/// all parts have it. The root of `P.sum` depends on bytes that this function does not read, so the
/// caller has to fill it in.
///
/// @throws config_error  there are no parts; they differ in a flag, the tokenizer or the dtype; a
///                       task is missing, repeated or out of order; the shares or extents of
///                       consecutive parts are not adjacent; a sum exceeds 2^63 - 1. The message
///                       counts parts from 1.
dataset_meta concatenate(std::span<const dataset_meta> parts);

/// Converts places in the `P.src` of a part into places in the `P.src` of the whole.
struct part_shift {
  std::uint32_t inputs_before = 0;  ///< added to each input number
  std::int64_t lines_before = 0;    ///< added to each line of the part's first input

  /// @throws config_error  a line exceeds 2^63 - 1.
  source_place apply(source_place place) const;
};

/// Returns one shift per part. Byte positions need no shift, because they count from the start of
/// the input file even in a part.
/// @throws config_error  as `concatenate`
std::vector<part_shift> part_shifts(std::span<const dataset_meta> parts);

}  // namespace millrace::formats
