// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/length_statistics.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>

// Example:
//
//     const millrace::dataset::indexed_dataset data("web_text_document");
//     const auto found = millrace::dataset::statistics_of(data, {.workers = 8});
//     std::cout << found.ids.entropy() << " bits per token; half of the documents have at most "
//               << found.document_lengths.quantile(0.5) << " tokens\n";

/// Counts of ids, lengths, duplicates and n-grams. All results are exact, and do not depend on the
/// number of threads.
namespace millrace::dataset {

struct statistics_options {
  int workers = 1;  ///< number of threads, at least 1
  /// Number of tokens that a thread counts at a time, at least 1; the result does not depend on it.
  std::int64_t block_tokens = std::int64_t{1} << 18;
  /// Called now and then with the number of tokens that this call has read, and will have read at
  /// the end. Never called by two threads at once. It may throw to stop the call.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

/// How often each id occurs.
struct MILLRACE_EXPORT token_counts {
  /// Ids from here on, and negative ids, are in `others`.
  static constexpr std::int64_t most_by_id = std::int64_t{1} << 22;

  std::vector<std::int64_t> by_id;              ///< by id; the last entry, if any, is not 0
  std::map<std::int64_t, std::int64_t> others;  ///< occurrences of other ids

  token_counts& operator+=(const token_counts& other);

  std::int64_t count(std::int64_t id) const;
  /// Number of tokens.
  std::int64_t total() const noexcept;
  /// Number of different ids.
  std::int64_t distinct() const noexcept;
  /// Number of different ids in 0 .. end - 1.
  std::int64_t distinct_below(std::int64_t end) const noexcept;
  /// Tokens that are negative, or `end` or more.
  std::int64_t tokens_outside(std::int64_t end) const noexcept;
  /// Entropy of the ids, in bits per token: the mean of -log2 of a token's frequency.
  double entropy() const;
  /// The `most` most frequent ids with their counts. The lower one of equally frequent ids is
  /// first.
  std::vector<std::pair<std::int64_t, std::int64_t>> most_frequent(std::size_t most) const;
  /// The counts of all ids that occur, highest first.
  std::vector<std::int64_t> ranked() const;
};

struct MILLRACE_EXPORT dataset_statistics {
  std::int64_t documents = 0;
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;
  token_counts ids;
  length_counts document_lengths;
  length_counts sequence_lengths;

  /// Adds the statistics of another dataset.
  dataset_statistics& operator+=(const dataset_statistics& other);
};

/// Counts ids and lengths, in one pass over the tokens. Takes at most 100 MiB per thread, and 2 MiB
/// for a vocabulary below 65,536 ids.
///
/// @throws config_error  the tokens are floats; or 2^20 different ids are negative or at least
/// 2^22,
///                       so they are not ids of a vocabulary
/// @throws format_error  an entry of the `.idx` is wrong
/// @throws io_error      a part of a file cannot be read or is missing
MILLRACE_EXPORT dataset_statistics statistics_of(const indexed_dataset& data,
                                                 const statistics_options& options = {});

/// How many tokens of each document are trained, by PREFIX.mask; nullopt without that file. Reads
/// one bit per token, on the calling thread.
///
/// @throws format_error, io_error  a file is wrong or cannot be read
MILLRACE_EXPORT std::optional<length_counts> trained_lengths_of(const indexed_dataset& data);

/// What came from one input file, by the PREFIX.src of a dataset.
struct input_share {
  std::string input;  ///< name as passed to the program that read it; may contain any bytes
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
};

/// The shares of all inputs, in their order in the `.src`; nullopt if there is no PREFIX.src.
///
/// @throws format_error, io_error  a file is wrong or cannot be read
MILLRACE_EXPORT std::optional<std::vector<input_share>> shares_of_inputs(
    const indexed_dataset& data);

/// A document of one of several datasets.
struct document_place {
  std::int64_t dataset = 0;
  std::int64_t document = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads it
  friend auto operator<=>(const document_place&, const document_place&) = default;
};

/// Documents with the same ids.
struct duplicate_group {
  std::int64_t tokens = 0;             ///< length of each
  std::int64_t copies = 0;             ///< number of documents, at least 2
  std::vector<document_place> places;  ///< the first ones, in order
};

struct duplicate_documents {
  std::int64_t documents = 0;           ///< documents that repeat an earlier one
  std::int64_t tokens = 0;              ///< their tokens
  std::int64_t group_count = 0;         ///< sets of equal documents
  std::vector<duplicate_group> groups;  ///< those that repeat the most tokens
};

/// Which groups `find_duplicates` returns.
struct duplicate_limits {
  std::size_t groups = 10;
  std::size_t places = 10;  ///< of each group
};

/// Finds documents that have exactly the same ids, in and across datasets. Empty documents do not
/// count. A hash finds candidates, whose ids are then compared. Takes 16 bytes of memory per
/// document.
///
/// @throws config_error, format_error, io_error  as statistics_of
MILLRACE_EXPORT duplicate_documents find_duplicates(std::span<const indexed_dataset> data,
                                                    const duplicate_limits& limits = {},
                                                    const statistics_options& options = {});

struct repeated_ngram {
  std::vector<std::int64_t> ids;
  std::int64_t count = 0;        ///< occurrences, overlapping ones included
  document_place first;          ///< the document of the first occurrence
  std::int64_t first_token = 0;  ///< its offset in this document
};

struct ngram_options {
  std::int64_t n = 13;                              ///< ids per n-gram, at least 1
  std::size_t most = 10;                            ///< number of n-grams to return
  std::size_t memory_bytes = std::size_t{1} << 30;  ///< for all threads; less takes more passes
};

struct repeated_ngrams {
  std::int64_t positions = 0;          ///< n-grams, all occurrences
  std::int64_t distinct = 0;           ///< different n-grams
  std::int64_t passes = 0;             ///< how often the tokens were read
  std::vector<repeated_ngram> ngrams;  ///< most frequent first; equally frequent ones by place
};

/// Finds the n-grams of ids that occur most often, and at least twice. An n-gram lies inside one
/// document. Counts are exact, and `distinct` is, unless two of the n-grams have the same 64-bit
/// hash.
///
/// Each n-gram is counted under its hash. A pass over the tokens counts a range of hashes, as many
/// as fit in the memory. A last pass compares the ids of the n-grams with the most frequent hashes.
///
/// @throws config_error  `n` is below 1, or as statistics_of
/// @throws format_error, io_error  as statistics_of
MILLRACE_EXPORT repeated_ngrams find_repeated_ngrams(std::span<const indexed_dataset> data,
                                                     const ngram_options& ngrams = {},
                                                     const statistics_options& options = {});

/// How near duplicates are found: MinHash of the n-grams of a document, with LSH bands.
struct MILLRACE_EXPORT near_duplicate_options {
  std::int64_t n = 5;           ///< ids per n-gram
  int hashes = 128;             ///< hash functions per document; a multiple of 32
  int bands = 32;               ///< a divisor of `hashes`
  double threshold = 0.8;       ///< least similarity
  std::uint64_t seed = 1;       ///< of the hash functions
  std::size_t most_pairs = 10;  ///< number of pairs to return

  /// The chance that two documents with this Jaccard index are compared.
  double chance(double jaccard) const;
};

/// Two documents and the estimated Jaccard index J of their sets of n-grams.
struct similar_documents {
  document_place earlier;
  document_place later;
  double jaccard = 0;
  double error = 0;  ///< standard error of the estimate: sqrt(J * (1 - J) / hashes)
};

struct near_duplicates {
  std::int64_t compared = 0;   ///< documents with at least one n-gram; only these are compared
  std::int64_t documents = 0;  ///< documents that are similar to an earlier one
  std::int64_t tokens = 0;     ///< their tokens
  std::vector<similar_documents> pairs;  ///< the most similar ones first
};

/// Finds documents whose sets of n-grams have an estimated Jaccard index of at least a threshold.
/// Equal documents count, too, and all of them are found. The hashes of a document are divided into
/// bands. Documents that have all hashes of a band in common form a list. Each document is compared
/// with the first document of its list and with the previous one. The result depends on the seed,
/// and on nothing else. Takes 4 bytes per document and hash function.
///
/// @throws config_error  an option is out of range, or as statistics_of
/// @throws format_error, io_error  as statistics_of
MILLRACE_EXPORT near_duplicates find_near_duplicates(std::span<const indexed_dataset> data,
                                                     const near_duplicate_options& near = {},
                                                     const statistics_options& options = {});

/// How much of a given text is in the datasets.
struct text_overlap {
  std::int64_t ngrams = 0;  ///< positions in the text; 0 if it has fewer than n ids
  std::int64_t found = 0;   ///< positions whose n-gram is in a document
};

struct contaminated_document {
  document_place place;
  std::int64_t tokens = 0;
  std::int64_t ngrams = 0;  ///< positions in the document whose n-gram is in a text
  std::int64_t token = 0;   ///< offset of the first of them
  std::int64_t text = 0;    ///< the first text that has the n-gram there
};

struct contamination {
  std::int64_t documents = 0;       ///< documents that share at least one n-gram with a text
  std::int64_t tokens = 0;          ///< their tokens
  std::vector<text_overlap> texts;  ///< by text
  std::vector<contaminated_document> worst;  ///< those that share the most n-grams first
};

/// Finds the documents that share at least one n-gram of ids with a given text. Ids are compared,
/// so the result is exact. Takes about 50 bytes of memory per id of the texts.
///
/// @param texts  the ids of each text, from the tokenizer of the datasets
/// @param n      ids per n-gram, at least 1
/// @param most   maximum size of `contamination::worst`
/// @throws config_error  `n` is below 1, or as statistics_of
/// @throws format_error, io_error  as statistics_of
MILLRACE_EXPORT contamination find_contamination(std::span<const indexed_dataset> data,
                                                 std::span<const std::vector<std::int64_t>> texts,
                                                 std::int64_t n = 13, std::size_t most = 10,
                                                 const statistics_options& options = {});

}  // namespace millrace::dataset
