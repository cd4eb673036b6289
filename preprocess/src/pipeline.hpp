// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "block_encoder.hpp"
#include "input_plan.hpp"
#include "progress.hpp"
#include "summary.hpp"

namespace millrace::preprocess {

/// One run of preprocess_data.
struct run_options {
  std::vector<input_file> inputs = {};
  std::filesystem::path output_prefix = {};  ///< `--output-prefix`
  std::vector<std::string> keys = {"text"};  ///< `--json-keys`
  bool append_eod = false;                   ///< `--append-eod`
  int workers = 1;                           ///< `--workers`: threads, all stages together
  bool overwrite = false;                    ///< `--overwrite`
  bad_record_policy on_bad_record = bad_record_policy::fail;
  /// Bytes of a block: the unit of work. Changes memory and speed, never output.
  std::size_t block_bytes = std::size_t{512} << 10;
};

/// Tokenizes the inputs into PREFIX_KEY_document.{bin,idx}, one pair a key, byte for byte what
/// Megatron's preprocess_data writes with the same tokenizer, whatever `workers` is.
///
/// Reading, parsing with tokenizing, and writing overlap; at most 2 * workers + 2 blocks are in
/// flight, so memory does not depend on the size of the inputs, only on the workers and the longest
/// line.
///
/// @throws config_error      the output exists and `overwrite` is off, the tokenizer has no eod to
///                           append, a key cannot be part of a file name.
/// @throws bad_record_error  under bad_record_policy::fail.
/// @throws io_error, format_error  an input or an output failed. Nothing shows under a final name.
run_summary run(const tokenizer::tokenizer& tokenizer, const run_options& options,
                progress& progress);

}  // namespace millrace::preprocess
