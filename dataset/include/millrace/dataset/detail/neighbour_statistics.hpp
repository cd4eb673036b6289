// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <millrace/dataset/detail/document_sources.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Measures whether adjacent documents are more similar than random pairs of documents. If they
/// are, a window does not represent the whole dataset, and shuffling the windows does not help. (A
/// window is a range of contiguous tokens that is served as a sample.)
struct MILLRACE_EXPORT neighbour_statistics {
  /// Number of documents in the sample. The sample consists of runs of 1,024 adjacent documents,
  /// spread over the whole dataset.
  std::int64_t documents = 0;
  /// Correlation of log2(1 + tokens) between a document and the next one: near 0 in shuffled data,
  /// near 1 in sorted data. nullopt if all documents have equal lengths, or if there are fewer than
  /// two documents.
  std::optional<double> length_correlation;
  /// Fraction of adjacent document pairs whose documents both come from the same input, and the
  /// fraction that shuffled data would have. nullopt without a `.src`.
  std::optional<double> same_input;
  std::optional<double> same_input_shuffled;

  /// Returns a warning text, or an empty text if there is nothing to report. There is nothing to
  /// report if the data looks shuffled, or if the sample has fewer than 1,000 documents.
  std::string warning() const;
};

/// Samples at most 262,144 documents, so time and memory are bounded.
///
/// @param sources  the sources of `data`, or null
/// @throws format_error  an entry in the sample is inconsistent.
MILLRACE_EXPORT neighbour_statistics look_at_neighbours(const indexed_dataset& data,
                                                        const document_sources* sources);

}  // namespace millrace::dataset
