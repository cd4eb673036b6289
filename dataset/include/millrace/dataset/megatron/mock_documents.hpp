// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <millrace/dataset/megatron/numpy_generator.hpp>

namespace millrace::dataset {

/// How many documents Megatron trains on under --mock-data.
inline constexpr std::size_t mock_document_count = 100'000;

/// Tokens of each of these documents, 1 to 4,095: the same in every run (megatron-core,
/// MockGPTLowLevelDataset). Written as a dataset they make what its users measure a loader's
/// ceiling with.
inline std::vector<std::int32_t> mock_document_lengths() {
  numpy_generator random(0);
  std::vector<std::int32_t> lengths(mock_document_count);
  for (std::int32_t& length : lengths) length = random.integer(1, 4096);
  return lengths;
}

/// The tokens of a mock document: 1, 2, 3, ... over the vocabulary, and an end.
///
/// @param out         as long as the document
/// @param vocab_size  of the tokenizer
/// @pre `out` is not empty, vocab_size > 0, T holds every id
template <class T>
void fill_mock_document(std::span<T> out, std::int64_t vocab_size, std::int64_t eod) {
  assert(!out.empty() && vocab_size > 0);
  for (std::size_t i = 0; i + 1 < out.size(); ++i) {
    out[i] = static_cast<T>((static_cast<std::int64_t>(i) + 1) % vocab_size);
  }
  out.back() = static_cast<T>(eod);
}

}  // namespace millrace::dataset
