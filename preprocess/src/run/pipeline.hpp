// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "record/block_encoder.hpp"
#include "report/metrics.hpp"
#include "report/progress.hpp"
#include "report/summary.hpp"
#include "run/run_options.hpp"

namespace millrace::preprocess {

/// Returns the options of the encoders of a run.
///
/// @throws config_error  as run().
encoder_options encoder_options_of(const tokenizer::tokenizer& tokenizer,
                                   const run_options& options);

/// Tokenizes the inputs and writes one dataset per key: PREFIX_KEY_document.bin, .idx and sidecars,
/// or PREFIX_KEY_sentence.* if texts are split into sentences. The `.bin` and `.idx` are identical,
/// byte for byte, to those that Megatron's preprocess_data writes with the same tokenizer. This
/// holds for any number of workers, even if the run was stopped and resumed.
///
/// Reading, encoding (parsing and tokenizing) and writing overlap. At most 2 * workers + 2 blocks
/// are in flight, so memory use depends on the number of workers, but not on the size of the
/// inputs.
///
/// If a run fails or is killed, the work that it finished is kept. PREFIX.journal records its
/// progress.
///
/// @throws config_error      the output or files of an unfinished run exist, but neither `resume`
///                           nor `overwrite` is set; the run to resume had other settings; the
///                           tokenizer has no end-of-document token to append; or a key cannot be
///                           part of a file name.
/// @throws bad_record_error  as committer::commit.
/// @throws stopped           `options.stop` was set.
/// @throws io_error, format_error  reading an input or writing an output failed. In that case, no
///                                 file has its final name.
///
/// @param metrics  receives the progress of the run; may be null. After run(), the caller must
///                 print its last note.
run_summary run(const tokenizer::tokenizer& tokenizer, const run_options& options,
                progress& progress, run_metrics* metrics = nullptr);

}  // namespace millrace::preprocess
