// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/dataset/instant_run.hpp>

namespace millrace::bench {

/// Returns a shuffled run over one dataset. The run never ends.
inline dataset::instant_run endless_run(const std::string& prefix, std::int64_t seq_len) {
  std::vector<dataset::instant_source> sources(1);
  sources[0].prefix = prefix;
  dataset::instant_options options;
  options.seq_len = seq_len;
  options.segments = {{.first_step = 0, .sources = {{0, 1.0}}}};
  return {sources, options};
}

}  // namespace millrace::bench
