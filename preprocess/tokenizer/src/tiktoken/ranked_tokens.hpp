// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>

#include "bpe/merge_table.hpp"
#include "bpe/token_table.hpp"
#include "text/token_index.hpp"

namespace millrace::tokenizer::detail {

/// A vocabulary whose ids give the order of merges: the pair whose result has the lowest id merges
/// first.
class ranked_tokens {
 public:
  /// Maximum size of a token in bytes. Real tokens have at most 256 bytes.
  static constexpr std::size_t max_token_bytes = 4096;
  /// Highest allowed id. No real vocabulary exceeds it. Unused ids below the highest id take
  /// memory.
  static constexpr std::int32_t max_id = (1 << 22) - 1;

  token_table tokens;  ///< for reading and reserve(); add tokens only with add()

  ranked_tokens() = default;
  ranked_tokens(const ranked_tokens&) = delete;
  ranked_tokens& operator=(const ranked_tokens&) = delete;

  /// Adds a token.
  /// @pre 0 <= id <= max_id, and the id is free
  /// @return a description of what is wrong with the token, or an empty string.
  std::string add(std::int32_t id, std::string_view bytes) {
    if (bytes.empty()) return "a token is empty";
    if (bytes.size() > max_token_bytes) {
      return "a token of " + std::to_string(bytes.size()) + " bytes, expected at most " +
             std::to_string(max_token_bytes);
    }
    if (const auto other = find(bytes)) {
      return "token " + formats::in_quotes(bytes) + " occurs twice, as " + std::to_string(*other) +
             " and " + std::to_string(id);
    }
    tokens.add(id, bytes);
    index_token(id);
    return {};
  }

  /// The id of the token that has these bytes, or std::nullopt.
  std::optional<std::int32_t> find(std::string_view bytes) const noexcept {
    const std::int32_t id = index_.find(bytes);
    return id == token_index::none ? std::nullopt : std::optional(id);
  }

  /// Returns the token of each byte.
  /// @param size_bytes  size of the file, used as the offset of an error
  /// @throws format_error  a byte has no token.
  std::array<std::int32_t, 256> byte_ids(std::size_t size_bytes) const {
    std::array<std::int32_t, 256> ids{};
    for (std::size_t byte = 0; byte < ids.size(); ++byte) {
      const char c = static_cast<char>(byte);
      const auto found = find({&c, 1});
      if (!found) {
        throw format_error(
            size_bytes, "the vocabulary has no token for the single byte " + std::to_string(byte));
      }
      ids[byte] = *found;
    }
    return ids;
  }

  /// Moves the tokens out of this object. Afterwards, the object and its index are empty.
  token_table take() {
    index_ = {};
    return std::move(tokens);
  }

 private:
  // The index points to the bytes of the table. If the table grows and its bytes move, the index is
  // rebuilt.
  void index_token(std::int32_t id) {
    if (tokens.count() == 1) first_ = id;
    const char* const bytes = tokens.bytes(first_).data();
    if (bytes == bytes_ && tokens.count() <= room_) {
      index_.add(tokens.bytes(id), id);
      return;
    }
    bytes_ = bytes;
    room_ = std::bit_ceil(tokens.count() + 256) - 1;  // the capacity of the index; it doubles
    index_ = token_index(room_);
    for (std::int64_t each = 0; each < tokens.end_id(); ++each) {
      if (tokens.has(each)) index_.add(tokens.bytes(each), static_cast<std::int32_t>(each));
    }
  }

  token_index index_;
  std::int32_t first_ = 0;       // the first token added
  const char* bytes_ = nullptr;  // where the bytes of `first_` were when the index was built
  std::size_t room_ = 0;         // capacity of the index, in tokens
};

/// Reads a `.tiktoken` file. Each line has a token's bytes in base64, a space, and the token's
/// rank, which is its id. Ranks may be in any order and have gaps. Lines end in LF or CRLF, and the
/// last line may have no line end. Empty lines are skipped.
///
/// @param tokens  must be empty
/// @throws format_error  a line has another form, or repeats a rank or a token; the offset is that
///                       of the line. Also thrown if the file has no tokens.
void parse_rank_file(std::string_view text, ranked_tokens& tokens);

/// Derives the merge list that is equivalent to a vocabulary of tokens with ranks.
///
/// tiktoken merges the adjacent pair whose joined bytes are the token of lowest rank (on ties, the
/// leftmost pair). It does not matter which two tokens form the pair. But a token always results
/// from the same two tokens: the merges within its bytes depend only on these bytes, so its parts
/// are the last two pieces to which its own bytes merge. If its bytes stop merging while more than
/// two pieces are left, the token never results from a merge.
///
/// The list is in order of id. In a vocabulary that does not come from training alone (such as
/// Llama 3's), a result may have a lower id than its parts.
std::vector<merge_rule> merges_of_ranked(const ranked_tokens& tokens,
                                         const std::array<std::int32_t, 256>& byte_ids);

}  // namespace millrace::tokenizer::detail
