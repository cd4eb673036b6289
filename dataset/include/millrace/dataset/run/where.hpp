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

/// A piece of a sample, and the document that it is of.
struct document_piece {
  std::int64_t document = 0;
  piece tokens;
  std::int64_t at = 0;  ///< where in the sample it begins

  friend bool operator==(const document_piece&, const document_piece&) = default;
};

/// What is served in a slot.
struct served_sample {
  slot_place slot;
  std::int64_t served = 0;    ///< its number among the served samples
  std::int64_t position = 0;  ///< of the run without edits and passes
  source_sample sample;
  std::int64_t k = 0;  ///< of the source's samples; of cyclic counted on from pass to pass
  std::vector<document_piece> pieces;  ///< of tokens, in order; the last token may be a label only
  std::int64_t padding = 0;            ///< tokens after them, or after documents among them
};

/// A slot in which a document appears.
struct appearance {
  slot_place slot;
  std::int64_t served = 0;    ///< as in served_sample
  std::int64_t position = 0;  ///< as in served_sample
  std::int64_t source = 0;
  std::int64_t k = 0;   ///< as in served_sample
  std::int64_t at = 0;  ///< where in the sample its first token is
  std::int64_t tokens = 0;
  bool label_only = false;  ///< its one token there is the last label, and no input

  friend bool operator==(const appearance&, const appearance&) = default;
};

/// Which documents are served where in a run, and back: one walk along sampler and run each time,
/// and nothing of its own. Datasets are opened when one of their documents is asked for. Any
/// thread.
class MILLRACE_EXPORT run_places {
 public:
  /// @param order      must outlive this
  /// @param most_open  datasets whose documents are kept open
  run_places(const run& order, const sampler& ranks, std::size_t most_open = 512);

  /// What a slot serves. O(log documents) and what the run takes.
  ///
  /// @throws config_error  there is no such step, rank or slot, or it is not served
  /// @throws io_error, format_error  a dataset cannot be read
  served_sample at(const slot_place& slot) const;

  /// The slots that have a token of a document, of served samples below `before`, in their order.
  ///
  /// @pre 0 <= source < source_count() of the run
  /// @throws config_error  there is no such document
  /// @throws io_error, format_error  a dataset cannot be read
  std::vector<appearance> of(std::int64_t source, std::int64_t document, std::int64_t before) const;

  /// The same of a dataset, which a blend may have several times.
  /// @throws config_error  also where the run does not have it
  std::vector<appearance> of(const std::filesystem::path& prefix, std::int64_t document,
                             std::int64_t before) const;

  /// The documents of a source, opened.
  /// @throws io_error, format_error  it cannot be
  std::shared_ptr<const source_documents> documents(std::int64_t source) const;

 private:
  struct contents;
  std::shared_ptr<contents> shared_;
};

}  // namespace millrace::dataset
