// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <millrace/formats/detail/mask.hpp>

#include "input/byte_buffer.hpp"
#include "record/record_parser.hpp"
#include "record/text_digest.hpp"

namespace millrace::preprocess {

/// Counts for a part of the input. The counts of all parts add up to those of the whole input.
struct record_counts {
  std::int64_t lines = 0;            ///< number of lines, including a last line without a line end
  std::int64_t blank_lines = 0;      ///< lines of only white space; they are skipped
  std::int64_t not_sampled = 0;      ///< records that `--sample-rate` left out, good or bad
  std::int64_t documents = 0;        ///< records that became a document
  std::int64_t lone_surrogates = 0;  ///< lone surrogates replaced by U+FFFD
  std::int64_t special_tokens = 0;   ///< special tokens that a text spells out and that became ids
  std::int64_t text_bytes = 0;       ///< UTF-8 bytes given to the tokenizer
  std::int64_t overlong = 0;         ///< conversations dropped because of their length
  std::int64_t truncated = 0;        ///< conversations whose last tokens were dropped
  std::array<std::int64_t, fault_kinds> bad_records{};  ///< counts by fault_kind

  std::int64_t bad_record_total() const noexcept {
    return std::accumulate(bad_records.begin(), bad_records.end(), std::int64_t{0});
  }
  bool operator==(const record_counts&) const = default;
  record_counts& operator+=(const record_counts& other) noexcept {
    lines += other.lines;
    blank_lines += other.blank_lines;
    not_sampled += other.not_sampled;
    documents += other.documents;
    lone_surrogates += other.lone_surrogates;
    special_tokens += other.special_tokens;
    text_bytes += other.text_bytes;
    overlong += other.overlong;
    truncated += other.truncated;
    for (std::size_t i = 0; i < bad_records.size(); ++i) bad_records[i] += other.bad_records[i];
    return *this;
  }
};

/// The place of a record, relative to the block's text. The fields have 64 bits because a block
/// with a huge line may exceed 4 GiB.
struct record_range {
  std::int64_t line = 0;    ///< number of lines of the block before the record
  std::uint64_t begin = 0;  ///< byte offset of the record; in a table, as `line`
  std::uint64_t size = 0;   ///< size in bytes, without the line end; in a table, 1 row
};

/// A bad record: its fault and its place.
struct block_fault {
  record_fault fault;  ///< `fault.offset_bytes` is relative to the record
  record_range place;
  std::uint64_t bytes = 0;  ///< size of the record in bytes
  std::string raw = {};     ///< the record itself, if the policy is `quarantine`
};

/// The documents of one block for one key.
struct encoded_column {
  byte_buffer ids;                          ///< token ids of all sequences, in the dataset's dtype
  std::size_t ids_bytes = 0;                ///< used bytes of `ids`
  std::vector<std::int32_t> lengths;        ///< one per sequence, in tokens
  std::vector<std::int64_t> document_ends;  ///< per document: the number of sequences up to its end
  formats::bit_buffer mask;  ///< one bit per token; empty if the dataset has no P.mask
};

/// What a block has before the line of one of its documents.
struct document_mark {
  record_counts counts;
  std::uint64_t text_bytes = 0;  ///< number of bytes from encoded_block::begin up to the line
  std::uint32_t crc32c = 0;      ///< checksum of these bytes
};

/// A tokenized block, with everything that the committer needs to write it to the outputs.
struct encoded_block {
  std::size_t input = 0;          ///< index of the input in the plan
  bool has_rows = false;          ///< as in byte_block
  std::uint64_t begin = 0;        ///< start of the block in the decompressed input, or first row
  std::uint64_t end = 0;          ///< end of the block; a giant line may follow
  std::uint64_t text_offset = 0;  ///< as byte_block::text_offset
  std::uint64_t text_bytes = 0;   ///< number of bytes from `begin` to `end`
  std::uint32_t crc32c = 0;       ///< checksum of these bytes
  std::uint64_t read_bytes = 0;   ///< as byte_block::read_bytes
  record_counts counts;
  std::vector<encoded_column> columns;  ///< one per key
  std::vector<record_range> places;     ///< one per document
  std::vector<block_fault> faults;      ///< one per bad record
  std::vector<document_mark> marks;     ///< one per document, if encoder_options::marks is set
  std::vector<text_digest> digests;     ///< one per document, if encoder_options::digests is set
};

/// Cuts a block before the line of one of its documents. What is left is what the text before that
/// line gives. If that is no line, the block is empty, even if it began with a byte order mark.
///
/// @param document     index of the document
/// @param token_bytes  size of a token
/// @pre the block has marks
void cut_before(encoded_block& block, std::size_t document, std::size_t token_bytes);

}  // namespace millrace::preprocess
