// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/megatron/gpt_index_view.hpp>
#include <millrace/dataset/detail/megatron/gpt_plan.hpp>
#include <millrace/dataset/detail/megatron/length_column.hpp>
#include <millrace/dataset/detail/sample/piece.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// The order in which Megatron's GPTDataset serves a dataset: which tokens make its k-th sample,
/// and which samples hold a token.
///
/// Indices from a file are checked where they are followed: a sample is what `plan` says it must
/// be, or `format_error`. Copies share the indices. Any thread.
class MILLRACE_EXPORT gpt_order {
 public:
  /// @param lengths  of all sequences of the `.idx`
  /// @pre the sizes of `index` are those of `plan`
  gpt_order(const gpt_plan& plan, length_column lengths, gpt_index_view index)
      : plan_(plan), lengths_(lengths), index_(std::move(index)) {}

  const gpt_plan& plan() const noexcept { return plan_; }
  const gpt_index_view& index() const noexcept { return index_; }

  /// Samples, over all epochs.
  std::int64_t size() const noexcept { return plan_.samples; }

  /// Tokens in a sample, those for the labels included.
  std::int64_t sample_tokens() const noexcept { return plan_.sequence_length + plan_.extra_token; }

  /// The pieces of sample k, in order, in place of what `pieces` held. A sequence without tokens
  /// that lies in the sample is a piece of none.
  ///
  /// @return how many tokens of padding follow: 0 but for a partial last sample
  /// @pre 0 <= k < size()
  /// @throws format_error  the index contradicts the dataset.
  /// @throws io_error      a file of the indices was cut off, or cannot be read any more.
  std::int64_t sample(std::int64_t k, std::vector<piece>& pieces) const {
    return checked([&] { return read_sample(shuffled(k), pieces); });
  }
  std::vector<piece> sample(std::int64_t k) const {
    std::vector<piece> pieces;
    (void)sample(k, pieces);
    return pieces;
  }

  /// The same of the j-th sample before the shuffle of samples.
  std::int64_t unshuffled_sample(std::int64_t j, std::vector<piece>& pieces) const {
    return checked([&] { return read_sample(j, pieces); });
  }

  /// The samples, ascending, that hold token `token` of sequence `sequence`: as many as it has
  /// epochs, fewer where a remainder is dropped, more where neighbours share it. Reads the whole
  /// document index and shuffle index.
  ///
  /// @pre 0 <= token < the length of the sequence
  /// @throws format_error, io_error  as sample()
  std::vector<std::int64_t> samples_with(std::int64_t sequence, std::int64_t token) const;

  /// The samples, ascending, that hold any token of some sequences; those that the part has not are
  /// in none. Reads the whole document index and shuffle index.
  ///
  /// @throws format_error, io_error  as sample()
  std::vector<std::int64_t> samples_with(sequence_range sequences) const;

  /// What no sample has as an input, in the order of the document index: behind the last sample.
  /// Its first token is the last label of that, where samples have an extra token.
  ///
  /// @throws format_error, io_error  as sample()
  std::vector<piece> behind_last_sample() const;

 private:
  struct row {
    std::int64_t entry;
    std::int64_t offset;
  };

  /// What `read` makes of the index, if all that it read was there.
  template <class Read>
  std::invoke_result_t<const Read&> checked(const Read& read) const {
    try {
      auto result = read();
      index_.check_there();
      return result;
    } catch (const format_error&) {
      index_.check_there();  // what is not there contradicts everything
      throw;
    }
  }
  // These only read.
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
