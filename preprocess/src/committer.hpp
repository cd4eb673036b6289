// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <span>
#include <string>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/dtype.hpp>

#include "block_encoder.hpp"
#include "dataset_writer.hpp"
#include "encoded_block.hpp"
#include "input_plan.hpp"

namespace millrace::preprocess {

/// A bad record under bad_record_policy::fail: `file:line (byte N): what`. The byte counts from
/// the start of the decompressed file, from 0; the line from 1.
class bad_record_error : public error {
 public:
  using error::error;
};

/// Gives encoded blocks their place in the output, in input order. Nothing else decides where a
/// byte goes, so neither threads nor the size of blocks can change the output. For one thread.
class committer {
 public:
  /// @param inputs    outlives this
  /// @param prefixes  of the output datasets, one a key
  committer(std::span<const input_file> inputs, const std::vector<std::filesystem::path>& prefixes,
            formats::dtype type, bad_record_policy policy);

  /// Notes given in a run; further faults are only counted.
  static constexpr std::size_t most_notes = 10;

  /// Appends the next block.
  ///
  /// @return a line for each of the block's faults, if it is among the run's first: empty under
  ///         `fail`.
  /// @throws bad_record_error  under `fail`, if the block has a bad record.
  std::vector<std::string> commit(const encoded_block& block);

  /// Completes, syncs and names all outputs.
  void finish();

  const record_counts& counts() const noexcept { return counts_; }
  /// Decompressed bytes of input committed so far.
  std::uint64_t input_bytes() const noexcept { return bytes_; }
  const std::list<dataset_writer>& writers() const noexcept { return writers_; }

 private:
  void limit(std::vector<std::string>& notes);
  std::string describe(const encoded_block& block, const block_fault& fault) const;

  std::span<const input_file> inputs_;
  bad_record_policy policy_;
  std::list<dataset_writer> writers_;  // a list, since a writer does not move
  record_counts counts_;
  std::size_t notes_ = 0;  // given so far, at most most_notes
  bool told_of_more_ = false;
  std::uint64_t bytes_ = 0;
  std::size_t input_ = 0;          // the file of the last block
  std::int64_t lines_before_ = 0;  // in that file, before the next block
};

}  // namespace millrace::preprocess
