// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/megatron/gpt_index_view.hpp>
#include <millrace/dataset/detail/megatron/gpt_plan.hpp>
#include <millrace/dataset/detail/sample/piece.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// The order in which Megatron's GPTDataset serves a dataset. Maps k to the tokens of the k-th
/// sample, and a token to the samples that contain it.
///
/// Indices from a file are checked when they are used: a query throws `format_error` if a sample
/// does not match `plan`. Copies share the indices. Thread-safe.
class MILLRACE_EXPORT gpt_order {
 public:
  /// @param lengths  lengths of all sequences of the `.idx`
  /// @pre the sizes of `index` are those of `plan`
  gpt_order(const gpt_plan& plan, length_column lengths, gpt_index_view index)
      : plan_(plan), lengths_(lengths), index_(std::move(index)) {}

  const gpt_plan& plan() const noexcept { return plan_; }
  const gpt_index_view& index() const noexcept { return index_; }

  /// Samples over all epochs.
  std::int64_t size() const noexcept { return plan_.samples; }

  /// Tokens in a sample, including the extra token for the labels.
  std::int64_t sample_tokens() const noexcept { return plan_.sequence_length + plan_.extra_token; }

  /// Replaces the contents of `pieces` with the pieces of sample k, in order. An empty sequence
  /// inside the sample gives a piece of 0 tokens.
  ///
  /// @return number of padding tokens that follow the pieces; 0 except for a partial last sample
  /// @pre 0 <= k < size()
  /// @throws format_error  the index contradicts the dataset.
  /// @throws io_error      an index file was truncated or can no longer be read.
  std::int64_t sample(std::int64_t k, std::vector<piece>& pieces) const {
    return checked([&] { return read_sample(shuffled(k), pieces); });
  }
  std::vector<piece> sample(std::int64_t k) const {
    std::vector<piece> pieces;
    (void)sample(k, pieces);
    return pieces;
  }

  /// As `sample`, but j is an index in the order before the samples are shuffled.
  std::int64_t unshuffled_sample(std::int64_t j, std::vector<piece>& pieces) const {
    return checked([&] { return read_sample(j, pieces); });
  }

  /// Returns the samples that contain token `token` of sequence `sequence`, in ascending order.
  /// There is usually one per epoch. There are fewer if the token is in a dropped remainder, and
  /// more if adjacent samples share the token. Reads all of the document index and the shuffle
  /// index.
  ///
  /// @pre 0 <= token < the length of the sequence
  /// @throws format_error, io_error  as `sample`
  std::vector<std::int64_t> samples_with(std::int64_t sequence, std::int64_t token) const;

  /// Returns the samples that contain any token of the given sequences, in ascending order.
  /// Sequences outside the dataset's part (train, valid or test) are in no sample. Reads all of the
  /// document index and the shuffle index.
  ///
  /// @throws format_error, io_error  as `sample`
  std::vector<std::int64_t> samples_with(sequence_range sequences) const;

  /// Returns the tokens after the inputs of the last sample, in the order of the document index. No
  /// sample has these tokens as inputs. If samples have an extra token, the first of these tokens
  /// is the last label of the last sample.
  ///
  /// @throws format_error, io_error  as `sample`
  std::vector<piece> behind_last_sample() const;

 private:
  struct row {
    std::int64_t entry;
    std::int64_t offset;
  };

  /// Calls `read` and checks that no page of the index was lost while it ran.
  template <class Read>
  std::invoke_result_t<const Read&> checked(const Read& read) const {
    try {
      auto result = read();
      index_.check_there();
      return result;
    } catch (const format_error&) {
      index_.check_there();  // a lost page may have caused the contradiction
      throw;
    }
  }
  // The functions below do not check for lost pages; their callers do, through `checked`.
  std::int64_t read_sample(std::int64_t j, std::vector<piece>& pieces) const;
  std::vector<std::int64_t> read_samples_with(std::int64_t sequence, std::int64_t token) const;
  std::vector<std::int64_t> read_samples_with(sequence_range sequences) const;
  std::vector<piece> read_behind_last_sample() const;

  row row_at(std::int64_t j) const noexcept {
    return {index_.sample[2 * j], index_.sample[2 * j + 1]};
  }
  std::int64_t shuffled(std::int64_t k) const;
  std::int64_t sequence_at(std::int64_t entry) const;
  std::int64_t length_at(std::int64_t entry) const {
    return lengths_[static_cast<std::size_t>(sequence_at(entry))];
  }
  std::int64_t first_token_of(std::int64_t entry) const;
  std::vector<std::int64_t> in_shuffled_order(std::vector<std::int64_t> unshuffled) const;
  static std::string text_of(row r);
  [[noreturn]] void throw_at_row(std::int64_t j, const std::string& what) const;
  [[noreturn]] void throw_bad_row(std::int64_t j) const;
  [[noreturn]] void throw_bad_sample(std::int64_t j) const;

  gpt_plan plan_;
  length_column lengths_;
  gpt_index_view index_;
};

}  // namespace millrace::dataset
