// SPDX-License-Identifier: Apache-2.0
#include "record/giant_chunks.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace millrace::preprocess {

void giant_chunk::encode(tokenizer::encoder& encoder) {
  ids.clear();
  id_ends.clear();
  fault.reset();
  const std::int64_t special_tokens_before = encoder.special_tokens_found();
  for (const part& each : parts) {
    fault = encoder.encode_part({text_of(each), each.is_first, each.is_last}, ids);
    if (fault) {
      fault->offset_bytes += static_cast<std::size_t>(each.offset_bytes);
      break;
    }
    id_ends.push_back(ids.size());
  }
  special_tokens = encoder.special_tokens_found() - special_tokens_before;
}

giant_chunk_reader::giant_chunk_reader(const tokenizer::tokenizer& tokenizer, giant_texts texts,
                                       std::size_t chunk_bytes,
                                       std::optional<sentence_splitter> splitter)
    : tokenizer_(tokenizer),
      texts_(std::move(texts)),
      chunk_bytes_(chunk_bytes),
      splitter_(std::move(splitter)) {}

bool giant_chunk_reader::next(giant_chunk& chunk) {
  chunk.parts.clear();
  chunk.text_ends.clear();
  std::swap(chunk.text, rest_);
  rest_.size = 0;
  std::size_t begin = 0;  // offset of the current text in the chunk
  // If a text cannot be cut, the chunk grows by at least half before the next attempt.
  std::size_t limit = std::max(chunk_bytes_, chunk.text.size + chunk.text.size / 2);
  for (;;) {
    if (!open_) {
      if (chunk.text.size >= chunk_bytes_ || chunk.parts.size() >= most_parts ||
          chunk.text_ends.size() >= most_parts) {
        return true;
      }
      // All texts of the chunk have ended, even if they gave no parts.
      if (!texts_.next()) return !chunk.text_ends.empty();
      open_ = true;
      begin = chunk.text.size;
    }
    const bool more = texts_.read(chunk.text);
    if (!more) {
      end_text(chunk, begin);
      open_ = false;
      given_ = 0;
    } else if (chunk.text.size >= limit) {
      if (cut(chunk, begin)) return true;
      limit = chunk.text.size + chunk.text.size / 2;
    }
  }
}

// Adds the last part or the last sentences of a text. Called when the whole text is in this chunk
// or in earlier chunks.
void giant_chunk_reader::end_text(giant_chunk& chunk, std::size_t begin) {
  chunk.text_ends.push_back(chunk.text.size);
  if (!splitter_) {
    chunk.parts.push_back({begin, chunk.text.size, given_ == 0, true, given_});
    return;
  }
  splitter_->split({chunk.text.data() + begin, chunk.text.size - begin}, sentences_);
  add_sentences(chunk, begin);
}

// Adds each sentence in `sentences_` as a part. `begin` is the offset in the chunk of the text from
// which the sentences were split.
void giant_chunk_reader::add_sentences(giant_chunk& chunk, std::size_t begin) const {
  for (const std::string_view sentence : sentences_) {
    const auto at = static_cast<std::size_t>(sentence.data() - chunk.text.data());
    chunk.parts.push_back({at, at + sentence.size(), true, true, given_ + (at - begin)});
  }
}

// Tries to end the chunk inside its last text, or else before that text. Returns false if neither
// is possible.
bool giant_chunk_reader::cut(giant_chunk& chunk, std::size_t begin) {
  const std::string_view text(chunk.text.data() + begin, chunk.text.size - begin);
  sentences_.clear();
  const std::size_t size =
      splitter_ ? splitter_->split_front(text, sentences_) : tokenizer_.last_cut(text);
  if (size == 0 && chunk.parts.empty()) return false;
  if (splitter_) {
    add_sentences(chunk, begin);
    given_ += size;
  } else if (size != 0) {
    chunk.parts.push_back({begin, begin + size, given_ == 0, false, given_});
    given_ += size;
  }
  keep_rest(chunk, begin + size);
  return true;
}

void giant_chunk_reader::keep_rest(giant_chunk& chunk, std::size_t begin) {
  rest_.size = chunk.text.size - begin;
  rest_.buffer.reserve(rest_.size, 0);
  if (rest_.size != 0) std::memcpy(rest_.buffer.data(), chunk.text.data() + begin, rest_.size);
  chunk.text.size = begin;
}

}  // namespace millrace::preprocess
