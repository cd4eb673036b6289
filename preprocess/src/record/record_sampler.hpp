// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "input/input_plan.hpp"

namespace millrace::preprocess {

/// `--sample-rate` and `--sample-seed`: take a random part of the records.
struct sample_options {
  double rate = 1;  ///< above 0, at most 1
  std::uint64_t seed = 0;
};

/// Decides which records a run takes. The decision depends only on the seed, the name of the input
/// and the byte of its decompressed text at which the record begins. So it is the same for any
/// workers, tasks and interruptions. Of two rates with the same seed, the higher one takes all
/// records of the lower one. Specification: formats/spec/meta.md, "Samples of records".
///
/// Immutable, so any number of threads may share it.
class record_sampler {
 public:
  record_sampler(const sample_options& options, std::span<const input_file> inputs);

  /// @param input       index of the input
  /// @param begin_byte  offset of the record in the decompressed text
  bool takes(std::size_t input, std::uint64_t begin_byte) const noexcept;

 private:
  std::uint64_t limit_;
  std::vector<std::uint64_t> hashes_;  // one per input
};

}  // namespace millrace::preprocess
