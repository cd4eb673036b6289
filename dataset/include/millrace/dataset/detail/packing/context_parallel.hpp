// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <millrace/detail/export.hpp>

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
MILLRACE_EXPORT std::int64_t document_multiple(const sequence_split& split);

/// Whether documents may be told apart by `cu_seqlens` under context parallelism.
///
/// @throws config_error  the shares of documents are not cut evenly; the message names the number.
MILLRACE_EXPORT void check_cu_seqlens(const sequence_split& split, std::int64_t pad_documents_to);

}  // namespace millrace::dataset
