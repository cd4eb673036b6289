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
#include "record/text_digest.hpp"
#include "record/text_key.hpp"

namespace millrace::preprocess {

/// Receives the ids of a giant record (a line too long for memory): key by key, and sequence by
/// sequence within a key. If the record turns out to be bad, the caller of encode_giant_record()
/// must undo everything that the sink received.
class id_sink {
 public:
  virtual ~id_sink() = default;

  /// Receives more ids of the current sequence.
  virtual void append(std::size_t key, std::span<const std::int32_t> ids) = 0;
  /// Ends the current sequence.
  ///
  /// @param length  number of ids in the sequence, at least 1
  virtual void end_sequence(std::size_t key, std::int32_t length) = 0;
  /// Receives the digest of the record's texts, last of all and only if the record is good. Not
  /// called without giant_options::digests.
  virtual void take_digest(const text_digest& /*digest*/) {}
};

struct giant_options {
  std::vector<text_key> keys;                                ///< at least one; distinct
  std::optional<std::int32_t> append_eod;                    ///< as in encoder_options
  std::optional<sentence_options> sentences = std::nullopt;  ///< as in encoder_options
  bool digests = false;                                      ///< as in encoder_options
  /// As in encoder_options.
  std::size_t tokenizer_bytes = tokenizer::tokenizer::default_encoder_bytes;
  int workers = 1;                                  ///< number of chunks encoded concurrently
  std::size_t window_bytes = std::size_t{1} << 18;  ///< bytes of the line in memory at a time
  std::size_t chunk_bytes = std::size_t{1} << 20;   ///< bytes of text encoded at a time
  std::int64_t most_tokens = most_sequence_tokens;  ///< maximum per sequence; smaller only in tests
  stage_clock* clock = nullptr;  ///< measures reading, encoding and writing; may be null
};

/// Returns the encoder of the calling thread. No other thread uses this encoder, and it must
/// outlive the call of encode_giant_record().
using encoder_of_thread = std::function<tokenizer::encoder&()>;

/// Encodes one line that is too long for memory. The ids, counts, faults and messages are the same
/// as those of block_encoder, for any window size, chunk size and number of workers.
///
/// The line is read twice. The first pass validates the line and finds the wanted values. The
/// second pass decodes the values one by one, and cuts their texts into chunks at places where a
/// cut does not change the ids. The threads of the calling task_arena encode the chunks. At most
/// `workers` + 2 chunks are in flight, so memory use does not depend on the size of the line or of
/// its texts. There are two exceptions: sentences, and texts in which the tokenizer finds no place
/// to cut, are held in memory as a whole.
///
/// @param line      must not be blank; the caller checks this
/// @param encoder   called by any thread of the arena, perhaps while another thread calls `sink`
/// @param sink      called by one thread at a time, but not always by the same thread
/// @param[out] counts  the counts of this record, except `lines`. If the record is bad, only
///                     bad_records is not zero.
/// @return nothing, or the fault; its offset is relative to the line
/// @throws io_error  the line cannot be read. Exceptions of `sink` pass through.
/// @throws line_abandoned  `line.stop` was set. The stop is noticed within one window, or within
///                         one chunk per worker.
std::optional<record_fault> encode_giant_record(const line_range& line,
                                                const giant_options& options,
                                                const tokenizer::tokenizer& tokenizer,
                                                const encoder_of_thread& encoder, id_sink& sink,
                                                record_counts& counts);

}  // namespace millrace::preprocess
