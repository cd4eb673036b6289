// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <millrace/dataset/detail/document_sources.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Whether documents that lie side by side are more alike than any two: then windows are no fair
/// sample of the whole, whatever the order in which they are served.
struct MILLRACE_EXPORT neighbour_statistics {
  /// Documents that were looked at: in runs of 1,024 neighbours, spread over the whole.
  std::int64_t documents = 0;
  /// Correlation of log2(1 + tokens) of a document with that of the next one: near 0 in shuffled
  /// data, near 1 in sorted data. Nothing where all are equally long, or fewer than two.
  std::optional<double> length_correlation;
  /// Part of neighbours that come from the same input, and what it would be in shuffled data.
  /// Nothing without a `.src`.
  std::optional<double> same_input;
  std::optional<double> same_input_shuffled;

  /// What is remarkable, as sentences; empty where nothing is, or less than 1,000 documents were
  /// looked at. Shuffled data passes.
  std::string warning() const;
};

/// Looks at a quarter of a million documents at most: constant time and memory.
///
/// @param sources  of `data`, or null
/// @throws format_error  an entry that is looked at contradicts itself.
MILLRACE_EXPORT neighbour_statistics look_at_neighbours(const indexed_dataset& data,
                                                        const document_sources* sources);

}  // namespace millrace::dataset
