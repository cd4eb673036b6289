// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "input/input_plan.hpp"
#include "record/block_encoder.hpp"
#include "record/encoded_block.hpp"
#include "report/estimate.hpp"
#include "report/summary.hpp"

namespace millrace::preprocess {

/// What an encoder counted in some lines.
struct sampled_counts {
  record_counts counts;
  std::int64_t tokens = 0;  ///< total over all keys
  std::vector<std::int64_t> tokens_of_keys = {};
  std::int64_t sequences = 0;  ///< total over all keys
};

/// Encodes complete lines and returns their counts. `record_parser::padding_bytes` bytes after the
/// lines must be readable.
using sample_encoder = std::function<sampled_counts(std::string_view lines)>;

/// Makes an encoder for samples. The encoder always skips bad records, whatever
/// `options.on_bad_record` is, and ignores `options.sampler`.
///
/// @param tokenizer  must outlive the encoder
sample_encoder make_sample_encoder(const tokenizer::tokenizer& tokenizer, encoder_options options);

/// The run to estimate.
struct dry_run_options {
  std::span<const input_file> inputs = {};
  std::size_t keys = 1;         ///< number of keys; each key has its own output
  std::size_t token_bytes = 2;  ///< size of the dataset's dtype
  int workers = 1;
  std::size_t block_bytes = std::size_t{512} << 10;
  std::size_t blocks_in_flight = 4;
  // Together, these are the bytes of files other than .bin and .idx.
  double sidecar_bytes_per_document = 0;
  double sidecar_bytes_per_token = 0;
  std::optional<std::int64_t> most_tokens = std::nullopt;  ///< per key; then the run ends
  bool permutes = false;    ///< `--fim-rate`: the run permutes other documents than the encoder
  double record_rate = 1;   ///< the part of the records that the run takes
  double most_seconds = 4;  ///< time limit per sampling method
  /// Inputs with a total of up to this many bytes on disk are encoded completely, if time allows.
  std::uint64_t whole_bytes = std::uint64_t{32} << 20;
};

/// The predicted results of a run. Sizes are in bytes.
struct dry_run_report {
  tokenizer_choice tokenizer = {};  ///< left empty by dry_run()
  bool exact = false;               ///< the whole input was encoded
  double sampled_bytes = 0;
  std::size_t sampled_places = 0;
  double sampling_seconds = 0;
  record_counts sampled;  ///< counts in the sample

  std::uint64_t input_files = 0;
  std::uint64_t read_bytes = 0;  ///< size on disk
  estimate input_bytes;          ///< size after decompression
  estimate documents;
  estimate tokens;
  estimate sequences;
  double bin_bytes = 0;
  double idx_bytes = 0;
  double sidecar_bytes = 0;

  int workers = 0;
  double seconds = 0;              ///< duration of the run if the disks are fast enough
  double encode_rate = 0;          ///< decompressed bytes per second per worker
  double memory_bytes = 0;         ///< maximum, if no line is longer than a block
  std::vector<std::string> notes;  ///< one sentence each
};

/// Encodes a sample of the inputs and extrapolates the counts to all inputs. Inputs of up to
/// `whole_bytes` in total are encoded completely, so their counts are exact. For larger inputs, the
/// sample consists of 256 places of 128 KiB, spread evenly over the bytes of uncompressed files,
/// and of the starts of up to 64 compressed files and JSON arrays. Every call samples the same
/// places, unless time runs out.
///
/// @throws io_error, format_error  an input cannot be read.
/// @throws config_error  an input is not a regular file. Sampling a pipe would lose the data read
///                       from it.
dry_run_report dry_run(const dry_run_options& options, const sample_encoder& encode);

/// Returns the report as a table for the user.
std::string describe(const dry_run_report& report);

/// Returns the report as one JSON object on one line.
std::string to_json(const dry_run_report& report);

}  // namespace millrace::preprocess
