// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#if !defined(__CUDA_ARCH__)
#include <bit>
#endif

#include <millrace/loader/cuda/detail/batch_work.hpp>

/// The work of one thread block, which makes one tile of a row. The functions are templates over
/// the block type, so that the same code runs on a device, on one CPU thread, and, in a test, on
/// several CPU threads.
///
/// A mark is one bit for a token of the tile. It says that a document begins at the token, or that
/// the token is an eod. A few bit operations find the last mark before a token, so the block needs
/// no search per token and no scan over threads.
///
/// A block type has these members:
///   size(), rank()        number of threads, a power of 2, and the index of the calling thread
///   sync()                as __syncthreads
///   largest(value)        the largest value of all threads, none of them negative; also does what
///                         sync() does
///   set_bits(word, bits)  sets bits in a word in which other threads may set bits at the same time
///   memory()              a tile_memory shared by all threads of the block
namespace millrace::loader::cuda {

/// Number of tokens of a row that one block makes. So a batch of 8 x 4,096 tokens takes 64 blocks,
/// with two tokens per thread. Smaller tiles would use more multiprocessors. But a thread with one
/// token has no other load to do while it waits for its first load, and every block must find its
/// documents again.
inline constexpr std::int32_t tile_tokens = 512;

/// In rows up to this length, a block finds the last eod before its tile by reading the text
/// backward, in at most four rounds of loads. If there is no eod, each block reads the whole row up
/// to its tile. So for longer rows, a kernel that runs first notes the last eod of each tile
/// (`marks`). For short rows, launching that kernel would cost more than it saves.
inline constexpr std::int32_t look_back_tokens = 8192;

/// Number of blocks per row.
MILLRACE_HOST_DEVICE inline std::int32_t tiles_of(const batch_work& work) {
  return static_cast<std::int32_t>((work.seq_len + tile_tokens - 1) / tile_tokens);
}

/// True if `mark_tile` must run for all tiles before `make_tile` runs for any.
MILLRACE_HOST_DEVICE inline bool needs_marks(const batch_work& work) {
  return work.marks != nullptr && work.position_ids != nullptr &&
         work.rules.positions == position_rule::after_eod && work.seq_len > look_back_tokens;
}

/// One bit per token of a tile.
struct tile_bits {
  std::uint32_t words[tile_tokens / 32 + 1];  ///< the last word is always 0
  std::uint32_t filled;                       ///< bit w is set if words[w] is not 0
};
static_assert(tile_tokens / 32 < 32);

/// Memory that all threads of a block share.
struct tile_memory {
  std::int32_t text[tile_tokens + 1];  ///< the tile's tokens, and the token after them
  tile_bits starts;                    ///< marks each document's first token, and the tile's
  tile_bits eods;
  element::document documents[tile_tokens];  ///< entry k has a value only if `starts` has bit k
};

namespace detail {

MILLRACE_HOST_DEVICE inline const std::int32_t* documents_of(const batch_work& work) {
  return work.cut() ? work.slices.begin : work.boundary_begin;
}

/// A tile and its row.
struct tile_place {
  MILLRACE_HOST_DEVICE tile_place(const batch_work& work, std::int32_t r, std::int32_t t)
      : row(r),
        tile(t),
        begin(t * tile_tokens),
        first_document(documents_of(work)[r]),
        last_document(documents_of(work)[r + 1] - 1),
        whole{0, work.real[r], 1} {
    const auto left = static_cast<std::int32_t>(work.seq_len) - begin;
    count = left < tile_tokens ? left : tile_tokens;
  }

  std::int32_t row;
  std::int32_t tile;
  std::int32_t begin;  ///< first token
  std::int32_t count;  ///< number of tokens
  /// index in `boundaries` at which the row's first document begins, or index in `slices` of the
  /// row's first slice
  std::int32_t first_document;
  std::int32_t last_document;  ///< index of the end of the row's last document or slice
  element::document whole;     ///< the row as one document, for tokens that need no document
};

MILLRACE_HOST_DEVICE inline std::int32_t larger(std::int32_t a, std::int32_t b) {
  return a < b ? b : a;
}

/// @pre word != 0
MILLRACE_HOST_DEVICE inline std::int32_t highest_bit(std::uint32_t word) {
#if defined(__CUDA_ARCH__)
  return 31 - __clz(static_cast<int>(word));
#else
  return 31 - std::countl_zero(word);
#endif
}

template <class Block>
MILLRACE_HOST_DEVICE inline void set_mark(Block& block, tile_bits& bits, std::int32_t k) {
  block.set_bits(&bits.words[k / 32], 1U << (k % 32));
  block.set_bits(&bits.filled, 1U << (k / 32));
}

/// Returns the index of the last marked token before token k of the tile, or -1 if there is none.
MILLRACE_HOST_DEVICE inline std::int32_t mark_before(const tile_bits& bits, std::int32_t k) {
  std::int32_t w = k / 32;
  std::uint32_t word = bits.words[w] & ((1U << (k % 32)) - 1);
  if (word == 0) {
    const std::uint32_t filled = bits.filled & ((1U << w) - 1);
    if (filled == 0) return -1;
    w = highest_bit(filled);
    word = bits.words[w];
  }
  return 32 * w + highest_bit(word);
}

template <class Token>
MILLRACE_HOST_DEVICE inline const Token* text_of(const batch_work& work, const tile_place& at) {
  return static_cast<const Token*>(work.text) + at.row * work.text_len;
}

/// Reads the tile's text and the token after the text, and clears all marks.
template <class Token, class Block>
MILLRACE_HOST_DEVICE inline void load_tile(Block& block, const batch_work& work,
                                           const tile_place& at) {
  tile_memory& memory = block.memory();
  const Token* const __restrict__ text = text_of<Token>(work, at) + at.begin;
  const auto left = static_cast<std::int32_t>(work.text_len) - at.begin;
  const std::int32_t there = left <= at.count ? left : at.count + 1;
  constexpr std::int32_t at_once = 4;  // loads that a thread has in flight
  for (std::int32_t from = block.rank(); from < there; from += at_once * block.size()) {
    std::int32_t tokens[at_once] = {};
    for (std::int32_t j = 0; j < at_once; ++j) {
      const std::int32_t k = from + j * block.size();
      if (k < there) tokens[j] = text[k];
    }
    for (std::int32_t j = 0; j < at_once; ++j) {
      const std::int32_t k = from + j * block.size();
      if (k < there) memory.text[k] = tokens[j];
    }
  }
  for (std::int32_t w = block.rank(); w <= tile_tokens / 32; w += block.size()) {
    memory.starts.words[w] = memory.eods.words[w] = 0;
    if (w == 0) memory.starts.filled = memory.eods.filled = 0;
  }
}

/// True if the fields of a token depend on the token's document.
MILLRACE_HOST_DEVICE inline bool has_documents(const batch_work& work) {
  return work.document_ends != nullptr || work.cut() || work.segment_ids != nullptr ||
         (work.position_ids != nullptr && work.rules.positions == position_rule::boundaries);
}

/// Marks the documents that have tokens in this tile, each at its first token here. Empty documents
/// get no mark.
template <class Block>
MILLRACE_HOST_DEVICE inline void mark_documents(Block& block, const batch_work& work,
                                                const tile_place& at) {
  const bool cut = work.cut();
  const std::int32_t* const __restrict__ boundaries = cut ? work.slices.ends : work.boundaries;
  const std::int32_t* const __restrict__ ends = cut ? work.slices.real_ends : work.document_ends;
  // The document that contains the tile's first token begins at one of the boundaries [low, high).
  // Each round divides the size of this range by the number of threads. Rows with few documents
  // need no round.
  std::int64_t low = at.first_document;
  std::int64_t high = at.last_document;
  while (high - low > block.size() && block.size() > 1) {
    const std::int64_t step = (high - low + block.size() - 1) / block.size();
    const std::int64_t b = low + block.rank() * step;
    const bool before = b < high && boundaries[b] <= at.begin;
    low += step * block.largest(before ? block.rank() : 0);
    high = low + step < high ? low + step : high;
  }
  tile_memory& memory = block.memory();
  for (std::int64_t b = low + block.rank(); b < at.last_document; b += block.size()) {
    const std::int32_t begin = boundaries[b];
    const std::int32_t next = boundaries[b + 1];
    const std::int32_t end = ends != nullptr ? ends[b + 1] : at.whole.end;
    if (begin >= at.begin + at.count) break;
    if (next <= begin || next <= at.begin) continue;
    const std::int32_t k = larger(begin - at.begin, 0);
    const auto number = static_cast<std::int32_t>(cut ? b : b - at.first_document) + 1;
    memory.documents[k] = {begin, end, number};
    set_mark(block, memory.starts, k);
  }
}

/// Returns the document of token k of the tile.
MILLRACE_HOST_DEVICE inline element::document document_of(const tile_memory& memory,
                                                          const batch_work& work,
                                                          const tile_place& at, std::int32_t k) {
  if (!has_documents(work)) return at.whole;
  return memory.documents[mark_before(memory.starts, k + 1)];
}

template <class Block>
MILLRACE_HOST_DEVICE inline void mark_eods(Block& block, const batch_work& work,
                                           const tile_place& at) {
  tile_memory& memory = block.memory();
  for (std::int32_t k = block.rank(); k < at.count; k += block.size()) {
    const element::document of = document_of(memory, work, at, k);
    const auto token = element::token_at(work.rules, of, at.begin + k, memory.text + k);
    if (token == work.rules.eod) set_mark(block, memory.eods, k);
  }
}

/// Returns the index of the token that follows the last eod before the tile, as `mark_tile` noted
/// it. Returns 0 if there is no such eod.
template <class Block>
MILLRACE_HOST_DEVICE inline std::int32_t noted_restart(Block& block, const batch_work& work,
                                                       const tile_place& at) {
  const std::int32_t* const __restrict__ marks =
      work.marks + static_cast<std::int64_t>(at.row) * tiles_of(work);
  for (std::int32_t end = at.tile; end > 0; end -= block.size()) {
    const std::int32_t t = end - 1 - block.rank();
    const std::int32_t restart = block.largest(t >= 0 ? marks[t] : 0);
    if (restart > 0) return restart;
  }
  return 0;
}

/// Returns the index of the token at which positions last restarted before the tile because of an
/// eod. If there was no such restart, returns 0, or an index outside the document of the tile's
/// first token.
template <class Token, class Block>
MILLRACE_HOST_DEVICE inline std::int32_t restart_before(Block& block, const batch_work& work,
                                                        const tile_place& at) {
  if (needs_marks(work)) return noted_restart(block, work, at);
  const element::document of = document_of(block.memory(), work, at, 0);
  const std::int32_t floor = work.document_ends != nullptr || work.cut() ? of.begin : 0;
  if (at.begin > of.end && work.rules.pad == work.rules.eod) return at.begin;  // padding is an eod
  const Token* const __restrict__ text = text_of<Token>(work, at);
  constexpr std::int32_t at_once = 8;  // loads that a thread has in flight
  std::int32_t end = at.begin < of.end ? at.begin : of.end;
  for (; end > floor; end -= at_once * block.size()) {
    std::int32_t restart = 0;
    for (std::int32_t j = 0; j < at_once; ++j) {
      const std::int32_t i = end - 1 - block.rank() - j * block.size();
      if (i >= floor && text[i] == work.rules.eod) restart = larger(restart, i + 1);
    }
    restart = block.largest(restart);  // the same on all threads, so all leave the loop together
    if (restart > 0) return restart;
  }
  return 0;
}

/// Writes the tile's share of the row's boundaries, and its share of the unused entries, which
/// repeat the last boundary.
template <class Block>
MILLRACE_HOST_DEVICE inline void put_boundaries(Block& block, const batch_work& work,
                                                const tile_place& at) {
  const std::int64_t tiles = tiles_of(work);
  const std::int64_t me = at.tile * static_cast<std::int64_t>(block.size()) + block.rank();
  const std::int64_t in_row = tiles * block.size();
  const std::int64_t last = work.boundary_begin[at.row + 1];
  for (std::int64_t b = work.boundary_begin[at.row] + 1 + me; b < last; b += in_row) {
    element::put_boundary(work, at.row, b);
  }
  if (at.row == 0 && me == 0) element::put_entry(work, 0, 0, 0);
  for (std::int64_t e = work.boundary_count - work.rows + 1 + at.row * in_row + me;
       e < work.cu_seqlens_size; e += work.rows * in_row) {
    element::put_unused_entry(work, e);
  }
}

/// Reads the tile and marks its documents. Also marks its eods if `eods` is true.
template <class Token, class Block>
MILLRACE_HOST_DEVICE inline void prepare_tile(Block& block, const batch_work& work,
                                              const tile_place& at, bool eods) {
  load_tile<Token>(block, work, at);
  block.sync();
  if (has_documents(work)) {
    mark_documents(block, work, at);
    block.sync();
  }
  if (eods) {
    mark_eods(block, work, at);
    block.sync();
  }
}

}  // namespace detail

/// Writes into `marks` the index of the token that follows the tile's last eod, or 0 if the tile
/// has no eod. Every thread of the block calls this function.
template <class Token, class Block>
MILLRACE_HOST_DEVICE inline void mark_tile(Block& block, const batch_work& work, std::int32_t row,
                                           std::int32_t tile) {
  const detail::tile_place at(work, row, tile);
  detail::prepare_tile<Token>(block, work, at, true);
  if (block.rank() != 0) return;
  const std::int32_t eod = detail::mark_before(block.memory().eods, at.count);
  work.marks[static_cast<std::int64_t>(row) * tiles_of(work) + tile] =
      eod < 0 ? 0 : at.begin + eod + 1;
}

/// Makes the fields of the tile's tokens, and the tile's share of the boundaries. Every thread of
/// the block calls this function. Adjacent threads write adjacent elements.
template <class Token, class Id, class Block>
MILLRACE_HOST_DEVICE inline void make_tile(Block& block, const batch_work& work, std::int32_t row,
                                           std::int32_t tile) {
  const detail::tile_place at(work, row, tile);
  const bool by_value =
      work.rules.positions == position_rule::after_eod && work.position_ids != nullptr;
  detail::prepare_tile<Token>(block, work, at, by_value);
  std::int32_t restart = 0;
  if (by_value && tile > 0) restart = detail::restart_before<Token>(block, work, at);

  const tile_memory& memory = block.memory();
  const std::int64_t offset = row * work.seq_len + at.begin;
  const auto part = [offset](auto* array) { return array == nullptr ? nullptr : array + offset; };
  Id* const __restrict__ tokens = part(static_cast<Id*>(work.tokens));
  Id* const __restrict__ labels = part(static_cast<Id*>(work.labels));
  Id* const __restrict__ position_ids = part(static_cast<Id*>(work.position_ids));
  float* const __restrict__ loss_mask = part(work.loss_mask);
  std::int32_t* const __restrict__ segment_ids = part(work.segment_ids);
  for (std::int32_t k = block.rank(); k < at.count; k += block.size()) {
    const std::int32_t i = at.begin + k;
    const element::document of = detail::document_of(memory, work, at, k);
    const std::int64_t token = element::token_at(work.rules, of, i, memory.text + k);
    const std::int32_t* const after = element::next_of(work, of, i, memory.text + k + 1);
    const std::int64_t next = element::token_at(work.rules, of, i + 1, after);
    if (tokens != nullptr) tokens[k] = element::id_of<Id>(work.rules, token);
    if (labels != nullptr) labels[k] = element::id_of<Id>(work.rules, next);
    if (loss_mask != nullptr) {
      const float loss = element::loss_of(work.rules, token, next);
      loss_mask[k] = element::is_counted(work, row, i) ? loss : 0.0F;
    }
    if (segment_ids != nullptr) segment_ids[k] = element::segment_of(work, of, i);
    if (position_ids == nullptr) continue;
    std::int32_t last = restart;
    if (by_value) {
      const std::int32_t eod = detail::mark_before(memory.eods, k);
      if (eod >= 0) last = at.begin + eod + 1;
    }
    position_ids[k] = i - element::start_of(work, of, last);
  }
  if (work.has_cu_seqlens()) detail::put_boundaries(block, work, at);
}

}  // namespace millrace::loader::cuda
