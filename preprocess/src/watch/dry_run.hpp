// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "input/input_plan.hpp"
#include "record/block_encoder.hpp"
#include "record/encoded_block.hpp"
#include "watch/estimate.hpp"
#include "watch/tokenizer_choice.hpp"

namespace millrace::preprocess {

/// What an encoder makes of some lines.
struct sampled_counts {
  record_counts counts;
  std::int64_t tokens = 0;     ///< over all keys
  std::int64_t sequences = 0;  ///< over all keys
};

/// Encodes whole lines, behind which `record_parser::padding_bytes` can be read.
using sample_encoder = std::function<sampled_counts(std::string_view lines)>;

/// An encoder of samples that skips bad records, whatever `options` say of them.
///
/// @param tokenizer  outlives it
sample_encoder make_sample_encoder(const tokenizer::tokenizer& tokenizer, encoder_options options);

/// A run to foretell.
struct dry_run_options {
  std::span<const input_file> inputs = {};
  std::size_t keys = 1;         ///< outputs
  std::size_t token_bytes = 2;  ///< of the dataset's dtype
  int workers = 1;
  std::size_t block_bytes = std::size_t{512} << 10;
  std::size_t blocks_in_flight = 4;
  double sidecar_bytes_per_document = 0;  ///< of all files beside .bin and .idx
  double most_seconds = 4;  ///< for each way of sampling; a place that was begun is finished
  /// Inputs of up to so many bytes on disk are encoded whole, if the time allows.
  std::uint64_t whole_bytes = std::uint64_t{32} << 20;
};

/// What a run would do. Sizes in bytes.
struct dry_run_report {
  tokenizer_choice tokenizer = {};  ///< left empty by dry_run()
  bool exact = false;               ///< all of the input was encoded
  double sampled_bytes = 0;
  std::size_t sampled_places = 0;
  double sampling_seconds = 0;
  record_counts sampled;  ///< what was met in the sample

  std::uint64_t input_files = 0;
  std::uint64_t read_bytes = 0;  ///< on disk
  estimate input_bytes;          ///< decompressed
  estimate documents;
  estimate tokens;
  estimate sequences;
  double bin_bytes = 0;
  double idx_bytes = 0;
  double sidecar_bytes = 0;

  int workers = 0;
  double seconds = 0;              ///< of the run, where the disks keep up
  double encode_rate = 0;          ///< decompressed bytes a second of one worker
  double memory_bytes = 0;         ///< at most, but for longer lines than blocks
  std::vector<std::string> notes;  ///< a sentence each
};

/// Encodes a sample of the inputs and works out what all of them would give. Inputs of up to
/// `whole_bytes` are encoded whole, and the counts are exact. Of larger ones it takes 256 places of
/// 128 KiB, spread evenly over the bytes of plain files, and the starts of up to 64 compressed ones
/// (and arrays of JSON); the same places each time, unless the time runs out.
///
/// @throws io_error, format_error  an input cannot be read.
/// @throws config_error  an input is no regular file: what is read from a pipe is gone.
dry_run_report dry_run(const dry_run_options& options, const sample_encoder& encode);

/// A table for a person.
std::string describe(const dry_run_report& report);

/// One JSON object, one line.
std::string to_json(const dry_run_report& report);

}  // namespace millrace::preprocess
