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
                                       std::size_t chunk_bytes)
    : tokenizer_(tokenizer), texts_(std::move(texts)), chunk_bytes_(chunk_bytes) {}

bool giant_chunk_reader::next(giant_chunk& chunk) {
  chunk.parts.clear();
  std::swap(chunk.text, rest_);
  rest_.size = 0;
  std::size_t begin = 0;  // of the text at hand, in the chunk
  // A part that could not be cut grows by half at least before the next attempt.
  std::size_t limit = std::max(chunk_bytes_, chunk.text.size + chunk.text.size / 2);
  for (;;) {
    if (!open_) {
      if (chunk.text.size >= chunk_bytes_ || chunk.parts.size() == most_parts) return true;
      if (!texts_.next()) return !chunk.parts.empty();
      open_ = true;
      begin = chunk.text.size;
    }
    const bool more = texts_.read(chunk.text);
    if (!more) {
      chunk.parts.push_back({begin, chunk.text.size, given_ == 0, true, given_});
      open_ = false;
      given_ = 0;
    } else if (chunk.text.size >= limit) {
      if (cut(chunk, begin)) return true;
      limit = chunk.text.size + chunk.text.size / 2;
    }
  }
}

// Ends the chunk before the end of its last text, if that can be.
bool giant_chunk_reader::cut(giant_chunk& chunk, std::size_t begin) {
  const std::string_view text(chunk.text.data() + begin, chunk.text.size - begin);
  const std::size_t size = tokenizer_.last_cut(text);
  if (size == 0 && chunk.parts.empty()) return false;
  if (size != 0) {
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
