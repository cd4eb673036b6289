// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdlib>

#include "run/run_options.hpp"

namespace millrace::preprocess {

/// Returns a number from the environment, or `usual` if the variable is not set. Tests set such
/// variables to run the code for large inputs on a small corpus.
inline std::size_t test_number(const char* name, std::size_t usual) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : usual;
}

inline void take_test_hooks(run_options& run) {
  run.limits.block_bytes = test_number("MILLRACE_TEST_BLOCK_BYTES", run.limits.block_bytes);
  run.limits.giant_bytes = test_number("MILLRACE_TEST_GIANT_BYTES", run.limits.giant_bytes);
  const auto period = static_cast<std::size_t>(run.checkpoint_period.count());
  run.checkpoint_period =
      std::chrono::milliseconds(test_number("MILLRACE_TEST_CHECKPOINT_MS", period));
}

}  // namespace millrace::preprocess
