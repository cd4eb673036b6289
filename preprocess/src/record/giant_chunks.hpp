// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "record/giant_texts.hpp"
#include "record/sentence_splitter.hpp"

namespace millrace::preprocess {

/// Consecutive parts of texts, and the ids of these parts after encode().
struct giant_chunk {
  struct part {
    std::size_t begin = 0;  ///< offset in giant_chunk::text
    std::size_t end = 0;
    bool is_first = true;            ///< the part is at the start of its text
    bool is_last = true;             ///< the part is at the end of its text
    std::uint64_t offset_bytes = 0;  ///< offset of the part in its text
  };

  text_bytes text;                     ///< includes the text between sentences
  std::vector<std::size_t> text_ends;  ///< where texts end in `text`
  std::vector<part> parts;

  // encode() fills the following members.
  tokenizer::id_buffer ids;
  std::vector<std::size_t> id_ends;  ///< for each encoded part, where its ids end in `ids`
  /// The fault that stopped encode(); its offset counts from the start of the text.
  std::optional<tokenizer::encode_fault> fault;
  std::int64_t special_tokens = 0;

  /// Encodes the parts, up to the first part that has a fault.
  void encode(tokenizer::encoder& encoder);

  std::string_view text_of(const part& which) const noexcept {
    return {text.data() + which.begin, which.end - which.begin};
  }
};

/// Cuts the texts of one key's value into chunks of about `chunk_bytes`, at places where a cut does
/// not change the ids. If the tokenizer finds no such place in the text, the chunk becomes longer.
/// With a splitter, chunks are cut between sentences. Each sentence is then one part, for which
/// `is_first` and `is_last` are true. Not thread-safe.
class giant_chunk_reader {
 public:
  /// @param tokenizer  must outlive this object
  giant_chunk_reader(const tokenizer::tokenizer& tokenizer, giant_texts texts,
                     std::size_t chunk_bytes, std::optional<sentence_splitter> splitter = {});

  /// Fills the text and the parts of `chunk`, whose buffers are reused. Returns false if nothing is
  /// left.
  ///
  /// @throws io_error  as line_window.
  bool next(giant_chunk& chunk);

  std::int64_t lone_surrogates() const noexcept { return texts_.lone_surrogates(); }

 private:
  static constexpr std::size_t most_parts = std::size_t{1} << 16;

  bool cut(giant_chunk& chunk, std::size_t begin);
  void end_text(giant_chunk& chunk, std::size_t begin);
  void add_sentences(giant_chunk& chunk, std::size_t begin) const;
  void keep_rest(giant_chunk& chunk, std::size_t begin);

  const tokenizer::tokenizer& tokenizer_;
  giant_texts texts_;
  std::size_t chunk_bytes_;
  std::optional<sentence_splitter> splitter_;
  std::vector<std::string_view> sentences_;  // a member only to reuse its memory
  text_bytes rest_;                          // rest of the current text, not yet in a chunk
  bool open_ = false;                        // a text was begun and not yet ended
  std::uint64_t given_ = 0;                  // bytes of the current text already in chunks
};

}  // namespace millrace::preprocess
