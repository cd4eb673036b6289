// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/sampler.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/detail/export.hpp>

// Example:
//
//     // Do two datasets have the same documents?
//     namespace dataset = millrace::dataset;
//     const dataset::open_options checked{.check = dataset::check_level::full};
//     const dataset::indexed_dataset a("old_text_document", checked);
//     const dataset::indexed_dataset b("new_text_document", checked);
//     const auto found = dataset::diff_datasets(a, b, {.workers = 8});
//     std::cout << found.only_in_a << " documents are missing in the new one\n";

/// Compares two datasets, or what two runs serve.
namespace millrace::dataset {

/// What is different at the first difference of two datasets.
enum class difference_kind : std::uint8_t {
  token,            ///< a token
  sequence_length,  ///< the length of a sequence, after equal tokens
  sequence_count,   ///< the number of sequences of a document, after equal sequences
  mode,             ///< the mode of a sequence
  document_count,   ///< one dataset ends here; the other has more documents
};

/// The name of a kind, e.g. "sequence_length".
inline const char* name(difference_kind kind) noexcept {
  constexpr const char* names[] = {"token", "sequence_length", "sequence_count", "mode",
                                   "document_count"};
  return names[static_cast<std::size_t>(kind)];
}

/// The first place where two datasets differ. Everything before it is equal, so it has the same
/// indices in both.
struct first_difference {
  difference_kind kind = difference_kind::token;
  std::int64_t document = 0;
  std::int64_t sequence = 0;  ///< index in the dataset
  std::int64_t token = 0;     ///< offset in the sequence
  /// Offset in the document.
  std::int64_t document_token = 0;
  /// The two values: ids, lengths, modes or counts. Floats are truncated, as in `token_view`.
  std::int64_t a = 0;
  std::int64_t b = 0;
  /// The bytes of both values: in the `.bin` for a token, else in the `.idx`.
  std::uint64_t a_offset = 0;
  std::uint64_t b_offset = 0;

  friend bool operator==(const first_difference&, const first_difference&) = default;
};

/// How much of two datasets differs. Only counted if all lengths are equal.
struct place_counts {
  std::int64_t documents = 0;
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;

  friend bool operator==(const place_counts&, const place_counts&) = default;
};

/// How two datasets A and B differ.
///
/// Two documents are equal if they have the same ids, in sequences of the same lengths and modes.
/// The types of the ids may differ: uint16 and int32 datasets can have equal documents. Floats are
/// compared bit by bit.
struct dataset_difference {
  std::optional<first_difference> first;  ///< nullopt: no document differs
  /// False if only one of the datasets has modes. Modes are then not compared.
  bool both_have_modes = true;
  /// Nullopt if lengths or document ends differ.
  std::optional<place_counts> in_place = place_counts{};

  // The documents as two collections, wherever they are. Copies count one by one.
  std::int64_t common = 0;     ///< documents that both have
  std::int64_t only_in_a = 0;  ///< documents of A without an equal one in B
  std::int64_t only_in_b = 0;
  /// The smallest number of common documents that have to move so that both have the same order.
  /// Copies of a document may make it larger than necessary, if A and B both lack documents.
  std::int64_t moved = 0;
  std::vector<std::int64_t> first_only_in_a;  ///< the first of them, ascending
  std::vector<std::int64_t> first_only_in_b;

  /// True if both have the same documents in the same order.
  bool same() const noexcept { return !first && both_have_modes; }

  friend bool operator==(const dataset_difference&, const dataset_difference&) = default;
};

struct diff_options {
  int workers = 1;  ///< number of threads, at least 1; the result does not depend on it
  /// Maximum size of each of the lists in a result.
  std::int64_t most_listed = 10;
  /// Number of tokens or samples that a thread compares at a time, at least 1. The result does not
  /// depend on it.
  std::int64_t block = std::int64_t{1} << 18;
  /// Called now and then with the number of tokens or samples that were compared so far. Never
  /// called by two threads at once. It may throw to stop.
  std::function<void(std::int64_t done)> progress = {};
};

/// Compares all documents of two datasets: first those at the same place, from the front and from
/// the back, then the rest by content. Equal hashes are confirmed by comparing the ids. Uses
/// 40 bytes of memory per document that is not at its place.
///
/// @pre both were opened with `check_level::full`
/// @throws config_error  one has floats and the other integers
/// @throws io_error      a part of a file cannot be read or is missing. Then open the dataset again
///                       before other reads: in this object, zeros are in place of that part.
MILLRACE_EXPORT dataset_difference diff_datasets(const indexed_dataset& a, const indexed_dataset& b,
                                                 const diff_options& options = {});

/// A run and its sampler, of which the served samples before `end` are compared.
struct diffed_run {
  const run& order;
  const sampler& ranks;
  std::int64_t end = 0;
};

/// How the samples that two runs serve differ.
///
/// Two samples are equal if they have the same tokens of the same datasets, in the same order. Two
/// datasets are the same if they are the same files, or if their documents are equal. A step
/// differs if it does not consist of equal samples in the same order. Which rank serves a sample
/// does not matter for that.
struct run_difference {
  // Both runs describe the samples [first, end), counted over all ranks.
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t only_in_a = 0;  ///< samples of A from `end` on
  std::int64_t only_in_b = 0;

  std::int64_t samples = 0;                  ///< samples that differ
  std::int64_t sample_ranges = 0;            ///< number of ranges that they form
  std::vector<position_range> first_ranges;  ///< the first of these ranges

  // Steps [first_step, end_step) have samples in [first, end), in either run.
  std::int64_t first_step = 0;
  std::int64_t end_step = 0;
  std::int64_t steps = 0;      ///< steps that differ
  std::int64_t reordered = 0;  ///< of these, steps with equal samples in another order
  std::int64_t step_ranges = 0;
  std::vector<position_range> first_step_ranges;

  std::int64_t served_by_other_rank = 0;  ///< equal samples that another rank serves
  std::vector<std::int64_t> ranks_in_a;   ///< ranks that serve a sample that differs, ascending
  std::vector<std::int64_t> ranks_in_b;

  bool same() const noexcept {
    return samples == 0 && steps == 0 && only_in_a == 0 && only_in_b == 0;
  }

  friend bool operator==(const run_difference&, const run_difference&) = default;
};

/// Compares all samples that two runs serve. If one run resumes at a later sample, the comparison
/// begins there, and the samples before do not count as differences. Uses one bit of memory per
/// sample.
///
/// @throws config_error  the runs have no served sample in common
/// @throws io_error, format_error  a dataset cannot be read
MILLRACE_EXPORT run_difference diff_runs(const diffed_run& a, const diffed_run& b,
                                         const diff_options& options = {});

}  // namespace millrace::dataset
