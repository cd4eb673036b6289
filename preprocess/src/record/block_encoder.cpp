// SPDX-License-Identifier: Apache-2.0
#include "record/block_encoder.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <millrace/formats/detail/crc32c.hpp>

#include "input/line_ends.hpp"
#include "process/stop_flag.hpp"
#include "record/fim_encoder.hpp"

namespace millrace::preprocess {
namespace {

// After a huge text, the capacity of the id buffer is reduced to this many ids.
constexpr std::size_t kept_ids = std::size_t{1} << 20;

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t") == line.npos;
}

template <class Id>
Id* ids_end(encoded_column& column) {
  return reinterpret_cast<Id*>(column.ids.data() + column.ids_bytes);
}

}  // namespace

block_encoder::block_encoder(const tokenizer::tokenizer& tokenizer, const encoder_options& options)
    : options_(options),
      parser_(options.keys),
      encoder_(tokenizer.make_encoder(options.tokenizer_bytes)) {
  assert(options.dtype == formats::dtype::uint16 || options.dtype == formats::dtype::int32);
  assert(!options.digests || (options.keys.size() == 1 && !options.conversations));
  if (options.stop != nullptr) {
    encoder_->set_interrupt_check([stop = options.stop] { expect_going_on(stop); });
  }
  if (options.sentences) {
    splitter_.emplace(options.sentences->language, options.sentences->keep_newlines);
  }
  if (options.conversations) conversations_.emplace(*options_.conversations);
  if (options.fim) fim_ = std::make_unique<fim_encoder>(*options_.fim, *encoder_);
}

block_encoder::~block_encoder() = default;

void block_encoder::encode(const byte_block& block, encoded_block& out) {
  out.input = block.input;
  out.has_rows = block.has_rows;
  out.begin = block.begin;
  out.text_offset = block.text_offset();
  out.text_bytes = 0;
  out.crc32c = 0;
  out.read_bytes = block.read_bytes;
  out.counts = {};
  out.places.clear();
  out.faults.clear();
  out.marks.clear();
  out.digests.clear();
  out.columns.resize(options_.keys.size());
  for (encoded_column& column : out.columns) {
    column.ids_bytes = 0;
    column.lengths.clear();
    column.document_ends.clear();
    column.mask.clear();
  }
  encode_more(block, out);
}

void block_encoder::encode_more(const byte_block& block, encoded_block& out) {
  if (options_.dtype == formats::dtype::uint16) {
    encode_lines<std::uint16_t>(block, out);
  } else {
    encode_lines<std::int32_t>(block, out);
  }
  const auto text = std::span(block.buffer.data() + block.text_at, block.text_bytes);
  out.crc32c = formats::crc32c(text, out.crc32c);
  out.text_bytes += text.size();
  out.end = block.has_rows ? block.end : block.begin + block.text_bytes;
  ids_.clear();
  ids_.shrink_to(kept_ids);
}

template <class Id>
void block_encoder::encode_lines(const byte_block& block, encoded_block& out) {
  const std::string_view text = block.text();
  document_mark mark;
  mark.text_bytes = out.text_bytes;
  mark.crc32c = out.crc32c;
  line_splitter lines(text);
  for (std::string_view line; lines.next(line); ++out.counts.lines) {
    if (is_blank(line)) {
      ++out.counts.blank_lines;
      continue;
    }
    const auto begin = static_cast<std::size_t>(line.data() - text.data());
    record_range place{out.counts.lines, begin, line.size()};
    if (block.has_rows) {
      place.begin = static_cast<std::uint64_t>(place.line);
      place.size = 1;
    }
    const std::uint64_t offset = out.text_offset + place.begin;
    if (options_.sampler && !options_.sampler->takes(out.input, offset)) {
      ++out.counts.not_sampled;
      continue;
    }
    const std::int64_t documents = out.counts.documents;
    if (options_.marks) {
      const std::uint64_t at = out.text_bytes + block.mark_bytes + begin;
      const std::uint64_t before = std::exchange(mark.text_bytes, at);
      mark.counts = out.counts;
      mark.crc32c = formats::crc32c(
          {block.buffer.data() + block.text_at + (before - out.text_bytes), at - before},
          mark.crc32c);
    }
    std::uint64_t fim_seed = 0;
    if (fim_) {
      fim_seed = options_.fim->seed_of(out.input, offset);
      if (!fim_->is_prepared(fim_seed)) prepare_fim(fim_seed, lines, block, out);
    }
    auto fault = conversations_ ? encode_conversation<Id>(line, out)
                                : encode_record<Id>(line, fim_seed, out);
    if (!fault) {
      if (out.counts.documents == documents) continue;
      out.places.push_back(place);
      if (options_.marks) out.marks.push_back(mark);
      continue;
    }
    ++out.counts.bad_records[static_cast<std::size_t>(fault->kind)];
    out.faults.push_back({std::move(*fault), place, line.size()});
    if (options_.on_bad_record == bad_record_policy::quarantine) out.faults.back().raw = line;
    if (options_.on_bad_record == bad_record_policy::fail) return;
  }
}

// Seeds the generators of a record and of those after it in the block.
//
// @param first  the seed of the record
// @param rest   the lines after the record
// @param out    counts the lines before the record
void block_encoder::prepare_fim(std::uint64_t first, line_splitter rest, const byte_block& block,
                                const encoded_block& out) {
  const char* const text = block.text().data();
  std::array<std::uint64_t, fim_encoder::most_seeds> seeds = {first};
  std::size_t count = 1;
  auto row = static_cast<std::uint64_t>(out.counts.lines);
  for (std::string_view line; count < seeds.size() && rest.next(line);) {
    ++row;
    if (is_blank(line)) continue;
    const std::uint64_t offset =
        out.text_offset + (block.has_rows ? row : static_cast<std::uint64_t>(line.data() - text));
    if (options_.sampler && !options_.sampler->takes(out.input, offset)) continue;
    seeds[count++] = options_.fim->seed_of(out.input, offset);
  }
  fim_->prepare(std::span(seeds).first(count));
}

template <class Id>
std::optional<record_fault> block_encoder::encode_record(std::string_view line,
                                                         std::uint64_t fim_seed,
                                                         encoded_block& out) {
  if (fim_ && line.size() >= options_.giant_bytes) {
    return too_large_for_fim(line.size(), options_.giant_bytes);
  }
  if (auto fault = parser_.parse(line)) return fault;
  const record_counts before = out.counts;
  const std::int64_t special_tokens_before = special_tokens_found();
  for (std::size_t key = 0; key < out.columns.size(); ++key) {
    encoded_column& column = out.columns[key];
    if (fim_) fim_->begin(fim_seed);
    if (auto fault = encode_document<Id>(key, column, out.counts)) {
      out.counts = before;
      drop_record(out);
      return fault;
    }
  }
  if (options_.digests) out.digests.push_back(digest_of(parser_.texts(0)));
  ++out.counts.documents;
  out.counts.lone_surrogates += parser_.lone_surrogates();
  out.counts.special_tokens += special_tokens_found() - special_tokens_before;
  return std::nullopt;
}

std::int64_t block_encoder::special_tokens_found() const noexcept {
  return encoder_->special_tokens_found() + (fim_ ? fim_->split_tokens_found() : 0);
}

// Appends nothing unless the conversation becomes a document. Special tokens are not counted: most
// of them are those of the template.
template <class Id>
std::optional<record_fault> block_encoder::encode_conversation(std::string_view line,
                                                               encoded_block& out) {
  const conversation_options& options = *options_.conversations;
  if (line.size() >= options_.giant_bytes) {
    return too_large_conversation(line.size(), options_.giant_bytes);
  }
  if (auto fault = conversations_->read(line)) return fault;
  const chat::training_text& text = conversations_->text();
  ids_.clear();
  spans_.clear();
  if (const auto fault = encoder_->encode_with_offsets(text.text, ids_, spans_)) {
    return record_fault{fault_kind::not_encodable, 0,
                        fmt::format("the conversation cannot be encoded: {} (at byte {} of its "
                                    "rendered text)",
                                    fault->what, fault->offset_bytes)};
  }
  if (options.refuse_shared_tokens) {
    if (const auto byte = shared_token(spans_, text.trained)) {
      return record_fault{fault_kind::bad_conversation, 0,
                          fmt::format("a token belongs to two turns, those that meet at byte {} of "
                                      "the rendered text, so the mask is not certain",
                                      *byte)};
    }
  }
  const std::int64_t ends = options_.append_eod ? 1 : 0;
  std::int64_t length = std::ssize(ids_.ids());
  const std::int64_t most =
      std::min(options.most_tokens.value_or(options_.most_tokens), options_.most_tokens);
  const bool is_overlong = length + ends > most;
  if (is_overlong && options.overlong == overlong_policy::drop) {
    ++out.counts.overlong;
    return std::nullopt;
  }
  if (is_overlong && options.overlong == overlong_policy::error) {
    return record_fault{
        fault_kind::overlong, 0,
        fmt::format("the conversation has {} tokens, more than the {} of {}", length + ends, most,
                    options.most_tokens ? "--max-length" : "a sequence"),
        "--overlong drop drops such conversations, and truncate cuts them"};
  }
  if (is_overlong) length = most - ends;
  encoded_column& column = out.columns.front();
  const std::uint64_t bits = column.mask.size();
  const auto kept = static_cast<std::size_t>(length);
  if (append_trained(std::span(spans_).first(kept), text.trained, options.untrained_tokens,
                     column.mask) == 0) {
    column.mask.resize_down(bits);
    return record_fault{fault_kind::untrained, 0,
                        is_overlong ? fmt::format("none of the first {} tokens is trained", most)
                                    : "no token of the conversation is trained"};
  }
  column.ids.reserve(column.ids_bytes + (kept + 1) * sizeof(Id), column.ids_bytes);
  Id* const end =
      std::ranges::transform(ids_.ids().first(kept), ids_end<Id>(column), [](std::int32_t id) {
        return static_cast<Id>(id);
      }).out;
  if (options_.append_eod) {
    *end = static_cast<Id>(*options_.append_eod);
    column.mask.append_run(false, 1);
  }
  column.ids_bytes += static_cast<std::size_t>(length + ends) * sizeof(Id);
  column.lengths.push_back(static_cast<std::int32_t>(length + ends));
  column.document_ends.push_back(static_cast<std::int64_t>(column.lengths.size()));
  ++out.counts.documents;
  out.counts.truncated += is_overlong ? 1 : 0;
  out.counts.text_bytes += std::ssize(text.text);
  return std::nullopt;
}

// Returns the sentences of `text`, or only `text` itself if there is no splitter. The result is
// valid until the next call or until `text` is destroyed.
std::span<const std::string_view> block_encoder::sequences_of(const std::string_view& text) {
  if (!splitter_) return {&text, 1};
  splitter_->split(text, sentences_);
  return sentences_;
}

// Appends one sequence for each text or sentence that has tokens. Last, appends the document's
// entry in `document_ends`. If a fault stops this function early, that entry is missing, so
// drop_record() removes the document's sequences.
template <class Id>
std::optional<record_fault> block_encoder::encode_document(std::size_t key, encoded_column& column,
                                                           record_counts& counts) {
  const std::size_t bytes_before = column.ids_bytes;
  for (const std::string_view& text : parser_.texts(key)) {
    counts.text_bytes += static_cast<std::int64_t>(text.size());
    for (const std::string_view sequence : sequences_of(text)) {
      if (auto fault = encode_sequence<Id>(key, text, sequence, column)) return fault;
    }
  }
  if (options_.append_eod && column.ids_bytes != bytes_before) {
    const std::int64_t length = std::int64_t{column.lengths.back()} + 1;
    if (length > options_.most_tokens) {
      return too_many_tokens(options_.keys[key], length, options_.most_tokens);
    }
    *ids_end<Id>(column) = static_cast<Id>(*options_.append_eod);
    column.ids_bytes += sizeof(Id);
    column.lengths.back() = static_cast<std::int32_t>(length);
  }
  column.document_ends.push_back(static_cast<std::int64_t>(column.lengths.size()));
  return std::nullopt;
}

template <class Id>
std::optional<record_fault> block_encoder::encode_sequence(std::size_t key, std::string_view text,
                                                           std::string_view sequence,
                                                           encoded_column& column) {
  ids_.clear();
  if (auto fault = fim_ ? fim_->encode(sequence, ids_) : encoder_->encode(sequence, ids_)) {
    fault->offset_bytes += static_cast<std::size_t>(sequence.data() - text.data());
    return record_fault{fault_kind::not_encodable, 0,
                        "text of key \"" + options_.keys[key].name +
                            "\" cannot be encoded: " + fault->what + " (at byte " +
                            std::to_string(fault->offset_bytes) + " of the text)"};
  }
  const std::size_t count = ids_.size();
  if (static_cast<std::int64_t>(count) > options_.most_tokens) {
    return too_many_tokens(options_.keys[key], static_cast<std::int64_t>(count),
                           options_.most_tokens);
  }
  if (count == 0) return std::nullopt;
  const std::size_t room = (count + 1) * sizeof(Id);  // + 1 for the end-of-document token
  column.ids.reserve(column.ids_bytes + room, column.ids_bytes);
  std::ranges::transform(ids_.ids(), ids_end<Id>(column),
                         [](std::int32_t id) { return static_cast<Id>(id); });
  column.ids_bytes += count * sizeof(Id);
  column.lengths.push_back(static_cast<std::int32_t>(count));
  return std::nullopt;
}

void cut_before(encoded_block& block, std::size_t document, std::size_t token_bytes) {
  const document_mark mark = block.marks[document];
  const std::uint64_t end = block.places[document].begin;
  block.end = end == 0 ? block.begin : block.text_offset + end;
  block.text_bytes = end == 0 ? 0 : mark.text_bytes;
  block.crc32c = end == 0 ? 0 : mark.crc32c;
  block.counts = mark.counts;
  block.places.resize(document);
  block.marks.resize(document);
  block.digests.resize(std::min(document, block.digests.size()));
  std::erase_if(block.faults, [&](const block_fault& each) { return each.place.begin >= end; });
  for (encoded_column& column : block.columns) {
    column.document_ends.resize(document);
    column.lengths.resize(document == 0 ? 0
                                        : static_cast<std::size_t>(column.document_ends.back()));
    const auto tokens = static_cast<std::size_t>(
        std::accumulate(column.lengths.begin(), column.lengths.end(), std::int64_t{0}));
    column.ids_bytes = tokens * token_bytes;
    if (column.mask.size() != 0) column.mask.resize_down(tokens);
  }
}

// Removes the partial results of a bad record: each column keeps only the documents that were
// completed for all columns.
void block_encoder::drop_record(encoded_block& out) const {
  const std::size_t item = formats::size_bytes(options_.dtype);
  const auto documents = static_cast<std::size_t>(out.counts.documents);
  for (encoded_column& column : out.columns) {
    column.document_ends.resize(documents);
    const std::int64_t sequences = documents == 0 ? 0 : column.document_ends.back();
    while (static_cast<std::int64_t>(column.lengths.size()) > sequences) {
      column.ids_bytes -= static_cast<std::size_t>(column.lengths.back()) * item;
      column.lengths.pop_back();
    }
  }
}

}  // namespace millrace::preprocess
