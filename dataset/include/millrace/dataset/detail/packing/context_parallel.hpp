// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// The parallelism that splits a sequence among ranks, in Megatron's terms.
struct sequence_split {
  std::int64_t context_parallel = 1;
  std::int64_t tensor_parallel = 1;
  bool sequence_parallel = false;  ///< tensor-parallel ranks also split the activations
};

/// Each document in a row must be padded to a multiple of this number. It is 1 without context
/// parallelism. With CP ranks it is 2 * CP, because each rank takes one chunk of the first half and
/// one chunk of the second half. With sequence parallelism over TP ranks, it is the least common
/// multiple of 2 * CP and CP * TP.
///
/// @throws config_error  a size is below 1 or above 2^20.
MILLRACE_EXPORT std::int64_t document_multiple(const sequence_split& split);

/// Checks that `cu_seqlens` can be used with this context parallelism.
///
/// @throws config_error  `pad_documents_to` is not a multiple of `document_multiple`; the message
///                       contains that multiple.
MILLRACE_EXPORT void check_cu_seqlens(const sequence_split& split, std::int64_t pad_documents_to);

}  // namespace millrace::dataset
