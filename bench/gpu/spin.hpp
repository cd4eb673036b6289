// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;

namespace millrace::bench {

/// Runs a simulated training step on the stream `on`: a kernel that spins for `nanoseconds` and
/// reads one token per row. Returns a cudaError_t.
int spin(const std::int64_t* tokens, std::int64_t rows, std::int64_t seq_len, std::int64_t* sum,
         std::int64_t nanoseconds, CUstream_st* on);

}  // namespace millrace::bench
