// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include <millrace/dataset/run/run.hpp>
#include <millrace/dataset/run/sampler.hpp>
#include <millrace/dataset/run/source_documents.hpp>
#include <millrace/dataset/sample/piece.hpp>
#include <millrace/export.hpp>

namespace millrace::dataset {

/// A piece of a sample, and its document.
struct document_piece {
  std::int64_t document = 0;
  piece tokens;
  std::int64_t at = 0;  ///< offset in the sample, in tokens

  friend bool operator==(const document_piece&, const document_piece&) = default;
};

/// The sample that a slot serves.
struct served_sample {
  slot_place slot;
  std::int64_t served = 0;    ///< its number among the served samples
  std::int64_t position = 0;  ///< in the run without edits and passes
  source_sample sample;
  std::int64_t k = 0;  ///< sample of the source; cyclic continues counting from pass to pass
  std::vector<document_piece> pieces;  ///< in order; the last token may be only a label
  std::int64_t padding = 0;            ///< padding tokens after pieces or documents
};

/// A slot in which a document appears.
struct appearance {
  slot_place slot;
  std::int64_t served = 0;    ///< as in served_sample
  std::int64_t position = 0;  ///< as in served_sample
  std::int64_t source = 0;
  std::int64_t k = 0;   ///< as in served_sample
  std::int64_t at = 0;  ///< offset of its first token in the sample, in tokens
  std::int64_t tokens = 0;
  bool label_only = false;  ///< its only token there is the last label, not an input

  friend bool operator==(const appearance&, const appearance&) = default;
};

/// Finds the documents that a slot serves, and the slots that serve a document, by the same sampler
/// and run that the loader uses. Opens a dataset when one of its documents is needed. Thread-safe.
///
/// Example: which documents does rank 3 get in step 100?
///
///     void print(const millrace::dataset::run& order, const millrace::dataset::sampler& ranks) {
///       const millrace::dataset::run_places places(order, ranks);
///       const auto served = places.at({.step = 100, .rank = 3, .slot = 0});
///       for (const auto& piece : served.pieces) std::cout << piece.document << '\n';
///     }
class MILLRACE_EXPORT run_places {
 public:
  /// @param order      must outlive this
  /// @param most_open  most datasets that are kept open
  run_places(const run& order, const sampler& ranks, std::size_t most_open = 512);

  /// The sample that a slot serves. Takes O(log documents) plus the run's own time.
  ///
  /// @throws config_error  the step, rank or slot does not exist or is not served
  /// @throws io_error, format_error  a dataset cannot be read
  served_sample at(const slot_place& slot) const;

  /// The slots that serve a token of a document, in order, for served samples below `before`.
  ///
  /// @pre 0 <= source < source_count() of the run
  /// @throws config_error  the document does not exist
  /// @throws io_error, format_error  a dataset cannot be read
  std::vector<appearance> of(std::int64_t source, std::int64_t document, std::int64_t before) const;

  /// The same for a dataset, which may occur several times in a blend.
  /// @throws config_error  also if the run does not have this dataset
  std::vector<appearance> of(const std::filesystem::path& prefix, std::int64_t document,
                             std::int64_t before) const;

  /// The documents of a source; opens it.
  /// @throws io_error, format_error  the source cannot be opened
  std::shared_ptr<const source_documents> documents(std::int64_t source) const;

 private:
  struct contents;
  std::shared_ptr<contents> shared_;
};

}  // namespace millrace::dataset
