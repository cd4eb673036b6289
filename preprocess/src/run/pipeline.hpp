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

/// What the encoders of a run are told.
///
/// @throws config_error  as run().
encoder_options encoder_options_of(const tokenizer::tokenizer& tokenizer,
                                   const run_options& options);

/// Tokenizes the inputs into PREFIX_KEY_document.{bin,idx} (with sentences: PREFIX_KEY_sentence)
/// and what lies beside them, one set a key: the `.bin` and `.idx` byte for byte what Megatron's
/// preprocess_data writes with the same tokenizer, whatever `workers` is and however often the run
/// was stopped and resumed.
///
/// Reading, parsing with tokenizing, and writing overlap; at most 2 * workers + 2 blocks are in
/// flight, so memory does not depend on the size of the inputs, only on the workers.
///
/// What was done is kept when a run fails or is killed, unless nothing was: PREFIX.journal says how
/// far it came.
///
/// @throws config_error      the output exists, or an unfinished run's, and no option says what to
///                           do about it; an unfinished run was told otherwise than this one; the
///                           tokenizer has no eod to append; a key cannot be part of a file name.
/// @throws bad_record_error  as committer::commit.
/// @throws stopped           `options.stop` was set.
/// @throws io_error, format_error  an input or an output failed. Nothing shows under a final name.
///
/// @param metrics  null, or told how the run goes; the caller tells what it notes at the end
run_summary run(const tokenizer::tokenizer& tokenizer, const run_options& options,
                progress& progress, run_metrics* metrics = nullptr);

}  // namespace millrace::preprocess
