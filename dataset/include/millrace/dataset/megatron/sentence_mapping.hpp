// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include <millrace/export.hpp>

namespace millrace::dataset {

/// What the samples of sentences are asked to be.
struct sentence_mapping_request {
  std::int32_t epochs = 1;
  std::int64_t most_samples = 0;  ///< no epoch is begun behind them
  std::int32_t most_tokens = 0;  ///< of a sample: Megatron's sequence length without special tokens
  double short_probability = 0;  ///< of a sample that is to be shorter; 0: none is
  std::uint32_t seed = 1234;
  std::int32_t least_sentences = 2;
};

/// A sample: sentences `first` to `last` - 1, in about `tokens` tokens.
struct sentence_run {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int32_t tokens = 0;
  bool operator==(const sentence_run&) const = default;
};

/// The samples of datasets in which each sequence is a sentence (BERT, T5), in their order, as
/// megatron-core's build_mapping makes them (helpers.cpp): sentences of a document are gathered
/// until there are enough tokens, and the samples of all epochs are shuffled together. A document
/// of which a sentence has more than 512 tokens, but it has no other, gives none.
///
/// @param documents  the document index: where each document begins, and the last ends
/// @param lengths    tokens of each sentence
/// @throws config_error  fewer than 3 tokens a sample with short ones; a probability that is none
/// @pre documents ascend, and end within `lengths`
MILLRACE_EXPORT std::vector<sentence_run> map_sentences(std::span<const std::int64_t> documents,
                                                        std::span<const std::int32_t> lengths,
                                                        const sentence_mapping_request& request);

}  // namespace millrace::dataset
