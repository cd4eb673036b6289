// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/formats/dtype.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "input/byte_block.hpp"
#include "input/line_ends.hpp"
#include "record/conversation_reader.hpp"
#include "record/encoded_block.hpp"
#include "record/record_parser.hpp"
#include "record/record_sampler.hpp"
#include "record/sentence_splitter.hpp"
#include "record/text_key.hpp"

namespace millrace::preprocess {

class fim_encoder;
class fim_plan;

/// Largest number of tokens in one sequence, including the end-of-document token. The index stores
/// the length of a sequence as an int32 (megatron-core, indexed_dataset.py).
inline constexpr std::int64_t most_sequence_tokens = std::numeric_limits<std::int32_t>::max();

/// Returns the fault that describes a text whose sequence has more than `most` tokens.
///
/// @param tokens  number of tokens in the sequence, including any end-of-document token
/// @param most    most_sequence_tokens; smaller only in tests
inline record_fault too_many_tokens(const text_key& key, std::int64_t tokens, std::int64_t most) {
  return {fault_kind::not_encodable, 0,
          "text of key \"" + key.name + "\" has " + std::to_string(tokens) +
              " tokens, more than the " + std::to_string(most) + " that a sequence can hold"};
}

/// Returns the fault that describes a conversation that is too large.
///
/// @param bytes        size of the record
/// @param giant_bytes  as in encoder_options
inline record_fault too_large_conversation(std::uint64_t bytes, std::size_t giant_bytes) {
  return {fault_kind::not_encodable, 0,
          "the conversation has " + std::to_string(bytes) + " bytes of JSON, expected less than " +
              std::to_string(giant_bytes)};
}

/// Returns the fault that describes a record that is too large for `--fim-rate`, which needs its
/// texts in memory. Parameters as above.
inline record_fault too_large_for_fim(std::uint64_t bytes, std::size_t giant_bytes) {
  return {fault_kind::not_encodable, 0,
          "the record has " + std::to_string(bytes) + " bytes of JSON, expected less than " +
              std::to_string(giant_bytes) + " with --fim-rate"};
}

/// What a run does with a bad record.
enum class bad_record_policy : std::uint8_t {
  fail,        ///< the first bad record, in input order, ends the run
  skip,        ///< the record is dropped for all keys, and counted
  quarantine,  ///< as `skip`, but the record is also stored in P.bad
};

/// How texts are split into sentences. Each sentence becomes a sequence.
struct sentence_options {
  std::string language = "english";  ///< `--lang`
  bool keep_newlines = false;        ///< `--keep-newlines`
};

struct encoder_options {
  std::vector<text_key> keys;              ///< `--json-keys` and `--text-key`
  std::optional<std::int32_t> append_eod;  ///< the id to append to each document, or nothing
  formats::dtype dtype{};                  ///< uint16 or int32
  bad_record_policy on_bad_record = bad_record_policy::fail;
  std::optional<sentence_options> sentences = std::nullopt;  ///< `--split-sentences`
  /// `--messages-key`: each record is a conversation, and `keys` has one key. Null: texts.
  std::shared_ptr<const conversation_options> conversations = nullptr;
  /// `--sample-rate`: the records that are taken. Null: all.
  std::shared_ptr<const record_sampler> sampler = nullptr;
  /// `--fim-rate`: permute some documents. Null: none. Not for conversations or sentences.
  std::shared_ptr<const fim_plan> fim = nullptr;
  bool marks = false;    ///< make encoded_block::marks, so that blocks can be cut
  bool digests = false;  ///< make encoded_block::digests. Only with one key, not for conversations
  /// Conversations of at least this many bytes of JSON are refused, and records with `fim`. Blocks
  /// do not contain longer lines, so the size of blocks does not matter.
  std::size_t giant_bytes = std::size_t{16} << 20;
  /// Size in bytes of the encoder's cache of pretokens (word-like pieces of text) and their ids.
  std::size_t tokenizer_bytes = tokenizer::tokenizer::default_encoder_bytes;
  std::int64_t most_tokens = most_sequence_tokens;  ///< maximum per sequence; smaller only in tests
  /// If `*stop` becomes nonzero while encode() normalizes a long text, encode() soon abandons the
  /// block and throws line_abandoned. `stop` may be null.
  const std::atomic<int>* stop = nullptr;
};

/// Encodes blocks of lines to documents of token ids. Use one encoder per thread.
///
/// The result depends only on the block, the options and the tokenizer, not on the thread that
/// encodes the block.
class block_encoder {
 public:
  /// @param tokenizer  must outlive this object
  block_encoder(const tokenizer::tokenizer& tokenizer, const encoder_options& options);
  ~block_encoder();

  /// Encodes a block to `out`. Overwrites `out`, but reuses its buffers. Stops at the first bad
  /// record if the policy is `fail`.
  ///
  /// @throws line_abandoned  encoder_options::stop was set while the tokenizer normalized a text.
  void encode(const byte_block& block, encoded_block& out);
  /// Appends to `out` the rows that read_more_rows() read into the block. Stops as encode().
  void encode_more(const byte_block& block, encoded_block& out);

  /// The token encoder of this block_encoder. Used for giant lines, which are not in a block.
  tokenizer::encoder& encoder() noexcept { return *encoder_; }

 private:
  template <class Id>
  void encode_lines(const byte_block& block, encoded_block& out);
  template <class Id>
  std::optional<record_fault> encode_record(std::string_view line, std::uint64_t fim_seed,
                                            encoded_block& out);
  void prepare_fim(std::uint64_t first, line_splitter rest, const byte_block& block,
                   const encoded_block& out);
  template <class Id>
  std::optional<record_fault> encode_conversation(std::string_view line, encoded_block& out);
  template <class Id>
  std::optional<record_fault> encode_document(std::size_t key, encoded_column& column,
                                              record_counts& counts);
  template <class Id>
  std::optional<record_fault> encode_sequence(std::size_t key, std::string_view text,
                                              std::string_view sequence, encoded_column& column);
  std::span<const std::string_view> sequences_of(const std::string_view& text);
  std::int64_t special_tokens_found() const noexcept;
  void drop_record(encoded_block& out) const;

  const encoder_options options_;
  record_parser parser_;
  std::unique_ptr<tokenizer::encoder> encoder_;
  tokenizer::id_buffer ids_;  // token ids of one sequence
  std::optional<sentence_splitter> splitter_;
  std::vector<std::string_view> sentences_;  // sentences of one text
  std::unique_ptr<fim_encoder> fim_;         // null without encoder_options::fim
  std::optional<conversation_reader> conversations_;
  std::vector<tokenizer::byte_span> spans_;  // of the tokens of one conversation
};

}  // namespace millrace::preprocess
