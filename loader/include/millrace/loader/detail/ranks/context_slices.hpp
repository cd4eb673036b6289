// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <millrace/error.hpp>

namespace millrace::loader {

/// A range of positions in a row.
struct row_slice {
  std::int64_t first = 0;
  std::int64_t length = 0;

  friend bool operator==(const row_slice&, const row_slice&) = default;
};

/// The part of a row that belongs to a context-parallel rank. A row has 2 * CP chunks of equal
/// length; the rank gets chunks cp and 2 * CP - 1 - cp. This gives all ranks equal work under a
/// causal mask, as does `get_batch_on_this_cp_rank` of megatron-core.
///
///   CP = 2, rank 0:  chunks 0 and 3    tokens   0 1 2 3 . . . . . . . . c d e f
///           rank 1:  chunks 1 and 2    tokens   . . . . 4 5 6 7 8 9 a b . . . .
///
/// Labels are those of the whole row: the label of a chunk's last token is the first token of the
/// next chunk of the row. So a rank also reads the token after each chunk. Position ids are
/// positions in the whole row. A loader with `loader_options::context_parallel` serves rows that
/// are already cut.
///
///     const millrace::loader::context_slices slices(4096, 2, cp_rank);  // seq_len, CP
///     std::vector<std::int64_t> mine(slices.length());
///     slices.take<std::int64_t>(batch.tokens().first(4096), mine);  // row 0
class context_slices {
 public:
  /// @throws config_error  the rank does not exist, or `seq_len` is not a multiple of the number of
  ///                       chunks
  context_slices(std::int64_t seq_len, std::int64_t context_parallel, std::int64_t cp_rank)
      : seq_len_(seq_len), chunk_(seq_len / chunks_of(seq_len, context_parallel)) {
    if (cp_rank < 0 || cp_rank >= context_parallel) {
      throw config_error("the context-parallel rank is " + std::to_string(cp_rank) +
                         ", expected 0 to " + std::to_string(context_parallel - 1));
    }
    slices_ = {
        {{cp_rank * chunk_, chunk_}, {(2 * context_parallel - 1 - cp_rank) * chunk_, chunk_}}};
    if (context_parallel == 1) slices_ = {{{0, seq_len}, {seq_len, 0}}};
  }

  /// The rank's two chunks, in row order. Without context parallelism, the first chunk is the whole
  /// row and the second chunk is empty.
  const std::array<row_slice, 2>& slices() const noexcept { return slices_; }

  /// Number of tokens that the rank gets of each row: seq_len / CP.
  std::int64_t length() const noexcept { return slices_[0].length + slices_[1].length; }

  /// The ranges that the rank reads in a row's text, which has seq_len + 1 tokens. There is one
  /// range per chunk: the chunk and the token after it. If the chunks are adjacent, there is a
  /// single range.
  std::vector<row_slice> reads() const {
    if (slices_[0].first + slices_[0].length == slices_[1].first) {
      return {{slices_[0].first, length() + 1}};
    }
    return {{slices_[0].first, chunk_ + 1}, {slices_[1].first, chunk_ + 1}};
  }

  /// The position id of token i of the rank's row, which is the token's position in the whole row.
  /// @pre 0 <= i < length()
  std::int64_t position(std::int64_t i) const noexcept {
    assert(0 <= i && i < length());
    return i < slices_[0].length ? slices_[0].first + i : slices_[1].first + i - slices_[0].length;
  }

  /// Copies this rank's part of whole rows. The rows may hold tokens, labels, masks or position
  /// ids.
  ///
  /// @param from  [rows, seq_len]
  /// @param to    [rows, length()]
  template <class T>
  void take(std::span<const T> from, std::span<T> to) const {
    assert(from.size() % static_cast<std::size_t>(seq_len_) == 0);
    assert(to.size() ==
           from.size() / static_cast<std::size_t>(seq_len_) * static_cast<std::size_t>(length()));
    std::size_t at = 0;
    for (std::size_t row = 0; row < from.size(); row += static_cast<std::size_t>(seq_len_)) {
      for (const row_slice& each : slices_) {
        for (std::int64_t i = 0; i < each.length; ++i) {
          to[at++] = from[row + static_cast<std::size_t>(each.first + i)];
        }
      }
    }
  }

 private:
  static std::int64_t chunks_of(std::int64_t seq_len, std::int64_t context_parallel) {
    if (context_parallel < 1 || context_parallel > std::int64_t{1} << 20) {
      throw config_error("context_parallel is " + std::to_string(context_parallel) +
                         ", expected 1 to 1048576");
    }
    const std::int64_t chunks = context_parallel == 1 ? 1 : 2 * context_parallel;
    if (seq_len >= chunks && seq_len % chunks == 0) return chunks;
    throw config_error("seq_len is " + std::to_string(seq_len) + ", expected a multiple of " +
                       std::to_string(chunks) + ", twice the context parallelism of " +
                       std::to_string(context_parallel));
  }

  std::int64_t seq_len_;
  std::int64_t chunk_;
  std::array<row_slice, 2> slices_;
};

/// Rejects a request for `cu_seqlens` if context parallelism cuts rows that are not packed.
/// @throws config_error  always
[[noreturn]] inline void refuse_cut_cu_seqlens(std::int64_t context_parallel) {
  throw config_error(
      "fields.cu_seqlens is true with a context_parallel of " + std::to_string(context_parallel) +
      ", but the rows are not packed: attention kernels need documents that are padded to a "
      "multiple of " +
      std::to_string(2 * context_parallel) +
      " tokens. Set fields.cu_seqlens to false, or use a packed_run with pad_documents_to");
}

/// Rejects a request for `cu_seqlens_padded` if rows are not packed.
/// @throws config_error  always
[[noreturn]] inline void refuse_padded_cu_seqlens() {
  throw config_error(
      "fields.cu_seqlens_padded is true, but the rows are not packed: their documents have no "
      "padding. Use fields.cu_seqlens alone, or a packed_run");
}

}  // namespace millrace::loader
