// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include <millrace/dataset/detail/document_sources.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// The part of one input that was read, according to PREFIX.meta. All documents of the input come
/// from this part.
struct source_extent {
  std::uint64_t begin = 0;      ///< first byte, in the decompressed text
  std::uint64_t end = 0;        ///< end, exclusive
  std::int64_t line_count = 0;  ///< lines in this part; documents count lines from `begin`, too
};

/// The order of the documents in a dataset.
enum class source_order {
  of_inputs,  ///< by input, then by line, without overlaps
  any,        ///< any other order, as requested by the user
};

/// Checks every entry by itself. The checks are listed under "for each group" in
/// formats/spec/src.md.
///
/// One pass over the `.src`, in constant memory.
///
/// @throws format_error  an entry is invalid; the message has the path and the byte of the first
///                       invalid entry.
MILLRACE_EXPORT void verify_sources(const document_sources& sources);

/// Makes the same checks, and also checks three promises of PREFIX.meta (formats/spec/meta.md):
/// both files have the same number of inputs; each document is inside the part of its input that
/// was read; and the documents are in `order`.
///
/// @param inputs  the inputs in the dataset's PREFIX.meta, in its order
/// @throws format_error  a document fails; the message has the first document that fails, the path,
///                       and the byte of its group in the `.src`.
MILLRACE_EXPORT void verify_sources(const document_sources& sources,
                                    std::span<const source_extent> inputs,
                                    source_order order = source_order::of_inputs);

}  // namespace millrace::dataset
