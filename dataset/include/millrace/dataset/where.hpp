// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/run/source_documents.hpp>
#include <millrace/dataset/detail/sample/piece.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/sampler.hpp>
#include <millrace/detail/export.hpp>

// Example:
//
//     // Which documents does rank 7 have in row 0 of step 123? Which steps serve document 42?
//     const millrace::dataset::indexed_dataset data("web_text_document");
//     const millrace::dataset::stored_run run(data, 4096);
//     const millrace::dataset::sampler ranks(run.end(), {.batch_size = 4, .world_size = 8});
//     const millrace::dataset::run_places places(run, ranks);
//     const auto served = places.at({.step = 123, .rank = 7, .slot = 0});
//     for (const auto& piece : served.pieces) std::cout << piece.document << '\n';
//     for (const auto& found : places.of(0, 42, ranks.end_sample())) {
//       std::cout << found.slot.step << '\n';
//     }

namespace millrace::dataset {

/// A piece of a sample, and its document.
struct document_piece {
  std::int64_t document = 0;
  piece tokens;
  std::int64_t at = 0;      ///< offset in the sample, in tokens
  std::int64_t inputs = 0;  ///< tokens that are inputs; one after them is only a label

  friend bool operator==(const document_piece&, const document_piece&) = default;
};

/// The sample that a slot serves.
struct served_sample {
  slot_place slot;
  std::int64_t served = 0;    ///< index among the served samples
  std::int64_t position = 0;  ///< in the run without edits; for `cyclic`, in its pass
  source_sample sample;
  std::int64_t k = 0;  ///< index in the source; with the `cyclic` sampler, counted over all passes
  std::vector<document_piece> pieces;  ///< in order
  std::int64_t padding = 0;            ///< padding tokens after pieces or documents
};

/// A slot (see `slot_place`) in which a document appears.
struct appearance {
  slot_place slot;
  std::int64_t served = 0;    ///< as in served_sample
  std::int64_t position = 0;  ///< as in served_sample
  std::int64_t source = 0;
  std::int64_t k = 0;   ///< as in served_sample
  std::int64_t at = 0;  ///< offset of its first token in the sample, in tokens
  std::int64_t tokens = 0;
  /// The document's only token in this sample is the last label, which is not an input.
  bool label_only = false;

  friend bool operator==(const appearance&, const appearance&) = default;
};

/// Finds the documents that a slot serves, and the slots that serve a document. Uses the same
/// sampler and run as the loader. Opens a dataset when one of its documents is needed. Thread-safe.
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
  /// @param order      must outlive this object
  /// @param most_open  maximum number of datasets that are kept open
  run_places(const run& order, const sampler& ranks, std::size_t most_open = 512);

  /// Returns the sample that a slot serves. Takes O(log documents) time plus the time of
  /// `run::pieces`.
  ///
  /// @throws config_error  the step, rank or slot does not exist or is not served
  /// @throws io_error, format_error  a dataset cannot be read
  served_sample at(const slot_place& slot) const;

  /// Returns the slots that serve a token of a document, in order. Considers only served samples
  /// below `before`.
  ///
  /// @pre 0 <= source < source_count() of the run
  /// @throws config_error  the document does not exist
  /// @throws io_error, format_error  a dataset cannot be read
  std::vector<appearance> of(std::int64_t source, std::int64_t document, std::int64_t before) const;

  /// As above, for the dataset with this prefix. If a blend contains the dataset several times, the
  /// result covers every occurrence.
  /// @throws config_error  also if the run does not have this dataset
  std::vector<appearance> of(const std::filesystem::path& prefix, std::int64_t document,
                             std::int64_t before) const;

  /// Returns the slots that serve at least one of the tokens [first, first + count) of a document.
  /// In each appearance, `at`, `tokens` and `label_only` are about these tokens alone. A repeated
  /// dataset is treated as above.
  /// @pre 0 <= first, 0 <= count
  /// @throws config_error, io_error, format_error  as above
  std::vector<appearance> of_tokens(const std::filesystem::path& prefix, std::int64_t document,
                                    std::int64_t first, std::int64_t count,
                                    std::int64_t before) const;

  /// Returns the documents of a source, after opening the source.
  /// @throws io_error, format_error  the source cannot be opened
  std::shared_ptr<const source_documents> documents(std::int64_t source) const;

 private:
  struct contents;
  struct document_part;

  std::vector<appearance> of(std::int64_t source, const document_part& part,
                             std::int64_t before) const;
  std::vector<appearance> of(const std::filesystem::path& prefix, const document_part& part,
                             std::int64_t before) const;

  std::shared_ptr<contents> shared_;
};

/// Tokens that are served too often or not often enough, without an explanation.
struct audit_fault {
  std::int64_t sequence = 0;
  std::int64_t first = 0;   ///< offset in the sequence, in tokens
  std::int64_t tokens = 0;  ///< may extend into the following sequences
  std::int64_t times = 0;   ///< how often they were inputs
  std::int64_t expected = 0;

  friend bool operator==(const audit_fault&, const audit_fault&) = default;
};

/// A reason why tokens are not served exactly once, and the number of these tokens.
using explained_tokens = std::pair<std::string, std::int64_t>;

/// Accounts for the tokens of a source in one round (one or more epochs). A token counts each time
/// it is an input. If the audited steps serve all their replays completely, this equation holds:
///
///   tokens * times = served + not_in_steps + all of left_out + holes
struct audit_ledger {
  std::int64_t source = 0;
  sample_round round;       ///< with the `cyclic` sampler, samples are counted over all passes
  std::int64_t tokens = 0;  ///< tokens in the whole dataset

  std::int64_t samples = 0;                ///< served samples
  std::int64_t served = 0;                 ///< tokens served as often as expected
  std::optional<std::int64_t> trained;     ///< of `served`, by PREFIX.mask; nullopt without one
  std::int64_t not_in_steps = 0;           ///< tokens only in samples before or after these steps
  std::vector<explained_tokens> left_out;  ///< dropped by the order, then by edits or the sampler
  std::int64_t holes = 0;                  ///< tokens missing for no known reason
  std::vector<explained_tokens> replayed;  ///< not in `served`: served again by edits
  std::int64_t repeated = 0;               ///< not in `served`: served more often than expected
  /// Not in `served`: last labels, which are inputs of the next window.
  std::int64_t label_only = 0;
  std::int64_t padding = 0;         ///< not in `served`: padding tokens
  std::vector<audit_fault> faults;  ///< the first `most_faults`

  bool sound() const noexcept { return holes == 0 && repeated == 0; }
};

struct audit_options {
  std::size_t most_changes = std::size_t{1} << 26;  ///< counts in memory at a time, 16 bytes each
  /// Maximum number of faults reported per ledger.
  std::size_t most_faults = 16;
  /// Maximum number of indices that are kept open.
  std::size_t most_open = 512;
};

/// Counts how often a run serves each token in steps [first_step, last_step), over every rank and
/// slot. A missing token can be explained in three ways: the token is in a sample of another step;
/// edits or the sampler drop its sample; or the order leaves the token out. A missing token without
/// an explanation is a hole. A token that is served too often is explained by a replayed sample;
/// otherwise, it counts as repeated.
///
/// The masks of datasets are checked against their checksums.
///
/// If the counts of all sources exceed `most_changes`, the streams are divided into parts, and all
/// steps are processed once for each part. This bounds the memory but takes more time.
///
/// Example: check one whole pass over a run.
///
///     namespace dataset = millrace::dataset;
///     bool is_sound(const dataset::run& order, const dataset::sampler& ranks) {
///       const auto ledgers = dataset::audit_run(order, ranks, ranks.first_whole_step(),
///                                               ranks.end_of_whole_steps());
///       return std::ranges::all_of(ledgers, &dataset::audit_ledger::sound);
///     }
///
/// @param last_step  at most sampler::end_of_whole_steps()
/// @return one ledger per round of each source in these steps, sorted by source and first sample
/// @throws config_error  the steps do not exist or are not served completely
/// @throws io_error, format_error  a dataset cannot be read
MILLRACE_EXPORT std::vector<audit_ledger> audit_run(const run& order, const sampler& ranks,
                                                    std::int64_t first_step, std::int64_t last_step,
                                                    const audit_options& options = {});

}  // namespace millrace::dataset
