// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "process/stage_times.hpp"
#include "record/block_encoder.hpp"
#include "record/encoded_block.hpp"
#include "record/line_window.hpp"
#include "record/record_parser.hpp"
#include "record/text_key.hpp"

namespace millrace::preprocess {

/// Takes the ids of a giant record: key after key, in the order of the keys; under each key
/// sequence after sequence. A fault may come after some of them: then the caller takes them back.
class id_sink {
 public:
  virtual ~id_sink() = default;

  /// More ids of the sequence at hand.
  virtual void append(std::size_t key, std::span<const std::int32_t> ids) = 0;
  /// The sequence has ended.
  /// @param length  of its ids, at least 1
  virtual void end_sequence(std::size_t key, std::int32_t length) = 0;
};

struct giant_options {
  std::vector<text_key> keys;                                ///< at least one; distinct
  std::optional<std::int32_t> append_eod;                    ///< as encoder_options
  std::optional<sentence_options> sentences = std::nullopt;  ///< likewise
  /// Likewise.
  std::size_t tokenizer_bytes = tokenizer::tokenizer::default_encoder_bytes;
  int workers = 1;                                  ///< chunks that are encoded at a time
  std::size_t window_bytes = std::size_t{1} << 18;  ///< of the line, at hand
  std::size_t chunk_bytes = std::size_t{1} << 20;   ///< of text, encoded at a time
  std::int64_t most_tokens = most_sequence_tokens;  ///< of a sequence; less only to test it
  stage_clock* clock = nullptr;  ///< told how long it reads, encodes and writes, or nothing
};

/// The encoder of the thread that asks, which nobody else uses and that outlives the call.
using encoder_of_thread = std::function<tokenizer::encoder&()>;

/// Encodes one line that is too long for memory: what block_encoder makes of it, the same ids,
/// counts, faults and words, for any window, chunk and number of workers.
///
/// The line is read twice: once to see that all of it is valid and where the wanted values are,
/// then value by value, decoded and cut where the tokenizer says that it changes nothing. Chunks
/// are encoded by the threads of the task_arena that it is called in. At most `workers` + 2 are in
/// flight, so that memory depends on neither the line nor its texts, with this exception: a text
/// in which the tokenizer knows no place to cut, or a sentence, is encoded as a whole.
///
/// @param line      is not blank (the caller knows)
/// @param encoder   called by any thread of the arena, between and during calls of `sink`
/// @param sink      called by one thread at a time, though not always the same
/// @param[out] counts  what the record adds to those of its input, lines apart; if it is bad,
///                  bad_records alone
/// @return nothing, or what is wrong; its offset is in the line
/// @throws io_error  the line cannot be read; and what `sink` throws
/// @throws line_abandoned  `line.stop` was set: within a window, or a chunk for each worker
std::optional<record_fault> encode_giant_record(const line_range& line,
                                                const giant_options& options,
                                                const tokenizer::tokenizer& tokenizer,
                                                const encoder_of_thread& encoder, id_sink& sink,
                                                record_counts& counts);

}  // namespace millrace::preprocess
