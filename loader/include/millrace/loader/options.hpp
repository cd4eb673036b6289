// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include <millrace/error.hpp>

namespace millrace::loader {

/// What a rank asks of its loader. All ranks give the same values, but for `rank`.
struct loader_options {
  std::int64_t batch_size = 1;        ///< rows of a micro-batch
  std::int64_t seq_len = 1024;        ///< tokens of a row
  std::int64_t rank = 0;              ///< data-parallel rank, 0 .. world_size - 1
  std::int64_t world_size = 1;        ///< data-parallel ranks
  std::int64_t consumed_samples = 0;  ///< where to go on: samples served before, over all ranks
  std::int64_t look_ahead = 2;        ///< micro-batches made before they are asked for
};

/// The same options.
///
/// @throws config_error  the first one that is out of range; the message names it.
inline const loader_options& check(const loader_options& options) {
  const auto expect = [](bool good, const char* name, std::int64_t value,
                         const std::string& range) {
    if (!good) {
      throw config_error(std::string(name) + " is " + std::to_string(value) + ", expected " +
                         range);
    }
  };
  // What fits an int32 leaves room for every product of two of them.
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  expect(options.batch_size >= 1 && options.batch_size <= most, "batch_size", options.batch_size,
         "1 to 2147483647");
  expect(options.seq_len >= 1 && options.seq_len <= most, "seq_len", options.seq_len,
         "1 to 2147483647");
  expect(options.world_size >= 1 && options.world_size <= most, "world_size", options.world_size,
         "1 to 2147483647");
  expect(options.rank >= 0 && options.rank < options.world_size, "rank", options.rank,
         "0 to world_size - 1, which is " + std::to_string(options.world_size - 1));
  expect(options.consumed_samples >= 0, "consumed_samples", options.consumed_samples, "0 or more");
  expect(options.look_ahead >= 1 && options.look_ahead <= 1024, "look_ahead", options.look_ahead,
         "1 to 1024");
  return options;
}

}  // namespace millrace::loader
