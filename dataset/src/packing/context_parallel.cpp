// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/packing/context_parallel.hpp>

#include <cassert>
#include <cstdint>
#include <numeric>
#include <string>

#include <millrace/error.hpp>

namespace millrace::dataset {

MILLRACE_INLINE std::int64_t document_multiple(const sequence_split& split) {
  for (const std::int64_t size : {split.context_parallel, split.tensor_parallel}) {
    if (size < 1 || size > 1 << 20) {
      throw config_error("a parallel size is " + std::to_string(size) + ", expected 1 to 1048576");
    }
  }
  const std::int64_t cp = split.context_parallel;
  if (cp == 1) return 1;
  return split.sequence_parallel ? std::lcm(2 * cp, cp * split.tensor_parallel) : 2 * cp;
}

MILLRACE_INLINE void check_cu_seqlens(const sequence_split& split, std::int64_t pad_documents_to) {
  const std::int64_t multiple = document_multiple(split);
  assert(multiple >= 1);
  if (pad_documents_to >= 1 && pad_documents_to % multiple == 0) return;
  throw config_error("pad_documents_to is " + std::to_string(pad_documents_to) +
                     ", expected a multiple of " + std::to_string(multiple) +
                     ": cu_seqlens with context parallelism of " +
                     std::to_string(split.context_parallel) +
                     " need packed documents whose shares the ranks can divide");
}

}  // namespace millrace::dataset
