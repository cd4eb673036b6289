// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "record/block_encoder.hpp"
#include "run/run_options.hpp"
#include "watch/metrics.hpp"
#include "watch/progress.hpp"
#include "watch/summary.hpp"

namespace millrace::preprocess {

/// The options of a run's encoders.
///
/// @throws config_error  as run().
encoder_options encoder_options_of(const tokenizer::tokenizer& tokenizer,
                                   const run_options& options);

/// Tokenizes the inputs into PREFIX_KEY_document.{bin,idx} (with sentences: PREFIX_KEY_sentence)
/// and sidecars, one set per key. The `.bin` and `.idx` are byte for byte what Megatron's
/// preprocess_data writes with the same tokenizer, for any number of workers and however often the
/// run was stopped and resumed.
///
/// Reading, parsing with tokenizing, and writing overlap; at most 2 * workers + 2 blocks are in
/// flight, so memory does not depend on the size of the inputs, only on the workers.
///
/// If a run fails or is killed, its work is kept, unless there is none. PREFIX.journal has its
/// progress.
///
/// @throws config_error      the output or that of an unfinished run exists, and no option says
///                           what to do; an unfinished run had other settings; the tokenizer has no
///                           eod to append; or a key cannot be part of a file name.
/// @throws bad_record_error  as committer::commit.
/// @throws stopped           `options.stop` was set.
/// @throws io_error, format_error  an input or output failed. No file has its final name.
///
/// @param metrics  gets the progress of the run; may be null. The caller prints its last note
run_summary run(const tokenizer::tokenizer& tokenizer, const run_options& options,
                progress& progress, run_metrics* metrics = nullptr);

}  // namespace millrace::preprocess
