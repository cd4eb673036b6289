// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <numeric>
#include <string>

#include <millrace/error.hpp>

namespace millrace::dataset {

/// What a sequence is cut among, as Megatron names it.
struct sequence_split {
  std::int64_t context_parallel = 1;
  std::int64_t tensor_parallel = 1;
  bool sequence_parallel = false;  ///< activations are cut among the tensor-parallel ranks, too
};

/// What each document's share of a row must be a multiple of: 1 without context parallelism, else
/// 2 * CP, as a rank takes one chunk of the first half and one of the second; with sequence
/// parallelism the least common multiple of that and CP * TP.
///
/// @throws config_error  a size is below 1 or above 2^20.
inline std::int64_t document_multiple(const sequence_split& split) {
  for (const std::int64_t size : {split.context_parallel, split.tensor_parallel}) {
    if (size < 1 || size > 1 << 20) {
      throw config_error("a parallel size is " + std::to_string(size) + ", expected 1 to 1048576");
    }
  }
  const std::int64_t cp = split.context_parallel;
  if (cp == 1) return 1;
  return split.sequence_parallel ? std::lcm(2 * cp, cp * split.tensor_parallel) : 2 * cp;
}

/// Whether documents may be told apart by `cu_seqlens` under context parallelism.
///
/// @throws config_error  the shares of documents are not cut evenly; the message names the number.
inline void check_cu_seqlens(const sequence_split& split, std::int64_t pad_documents_to) {
  const std::int64_t multiple = document_multiple(split);
  if (pad_documents_to >= 1 && pad_documents_to % multiple == 0) return;
  throw config_error("pad_documents_to is " + std::to_string(pad_documents_to) +
                     ", expected a multiple of " + std::to_string(multiple) +
                     ": cu_seqlens with context parallelism of " +
                     std::to_string(split.context_parallel) +
                     " need packed documents whose shares the ranks can divide");
}

}  // namespace millrace::dataset
