// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "block_encoder.hpp"
#include "input_plan.hpp"
#include "read_limits.hpp"

namespace millrace::preprocess {

/// One run of preprocess_data.
struct run_options {
  std::vector<input_file> inputs = {};
  std::filesystem::path output_prefix = {};  ///< `--output-prefix`
  std::vector<std::string> keys = {"text"};  ///< `--json-keys`
  std::string tokenizer_type = {};           ///< `--tokenizer-type`, for P.meta
  bool append_eod = false;                   ///< `--append-eod`
  int workers = 1;                           ///< `--workers`: threads, all stages together
  bool overwrite = false;                    ///< `--overwrite`
  bool resume = false;                       ///< `--resume`
  bad_record_policy on_bad_record = bad_record_policy::fail;
  std::optional<std::int64_t> most_bad_records = std::nullopt;  ///< `--max-bad-records`
  bool checksums = true;                                        ///< not `--no-checksums`
  bool provenance = true;                                       ///< not `--no-provenance`

  read_limits limits = {};
  /// Between two moments at which what was done is made safe. Zero: after every block.
  std::chrono::milliseconds checkpoint_period{5000};
  /// Not zero: stop soon, keeping what was done. May be set by a signal; null if by nothing.
  const std::atomic<int>* stop = nullptr;
};

}  // namespace millrace::preprocess
