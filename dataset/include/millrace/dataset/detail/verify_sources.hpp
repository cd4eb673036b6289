// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include <millrace/dataset/detail/document_sources.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// What was read of one input, as PREFIX.meta says: all that documents can come from.
struct source_extent {
  std::uint64_t begin = 0;      ///< first byte, in the decompressed text
  std::uint64_t end = 0;        ///< behind the last one
  std::int64_t line_count = 0;  ///< counted from `begin`, as the lines of its documents are
};

/// In which order documents lie.
enum class source_order {
  of_inputs,  ///< of inputs and their lines, none within another
  any,        ///< another, which somebody asked for
};

/// Every entry is sound by itself: the list "for each group" of formats/spec/src.md.
///
/// One pass over the `.src`, in constant memory.
///
/// @throws format_error  the first one that is not, with the path and the byte.
MILLRACE_EXPORT void verify_sources(const document_sources& sources);

/// Also that the inputs are as many, that each document comes from within what was read of its one,
/// and that documents lie in `order`: what a PREFIX.meta promises (formats/spec/meta.md).
///
/// @param inputs  of the dataset's PREFIX.meta, in its order
/// @throws format_error  the first document that does not, with the path, and the byte where the
///                       `.src` tells its group.
MILLRACE_EXPORT void verify_sources(const document_sources& sources,
                                    std::span<const source_extent> inputs,
                                    source_order order = source_order::of_inputs);

}  // namespace millrace::dataset
