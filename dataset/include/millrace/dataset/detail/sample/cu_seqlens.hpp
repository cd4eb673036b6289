// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <millrace/dataset/detail/sample/piece.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>

/// The document boundaries of a sample, derived from the index and not from token values.
/// Attention kernels take them instead of a mask.
namespace millrace::dataset {

/// The result of `fill_cu_seqlens`.
struct cu_seqlens_size {
  std::int64_t entries = 0;     ///< number of entries from the leading 0 to the first seq_len
  std::int32_t max_seqlen = 0;  ///< largest distance between two adjacent boundaries
  friend bool operator==(const cu_seqlens_size&, const cu_seqlens_size&) = default;
};

/// A predicate for `fill_cu_seqlens` that makes each piece a separate document. This is Megatron's
/// rule, because Megatron calls each sequence a document.
struct pieces_apart {
  bool operator()(const piece&, const piece&) const noexcept { return false; }
};

/// A predicate that returns true if a piece continues the document of the previous piece. Pieces
/// must be in stored order; a document may have several sequences. A view: the dataset must outlive
/// it.
class MILLRACE_EXPORT same_document {
 public:
  explicit same_document(const indexed_dataset& data) noexcept : data_(&data) {}
  explicit same_document(const indexed_dataset&&) = delete;

  bool operator()(const piece& before, const piece& after) const;

 private:
  const indexed_dataset* data_;
};

/// Fills in the document boundaries of one sample like Megatron's `inter_document_masking`: the
/// cumulative lengths of its pieces, without the extra token. If the pieces do not fill the row,
/// the padding belongs to the last document. Unused entries of `out` are set to seq_len.
///
///   pieces of 3, 4 and 2 tokens, seq_len 8, an extra token      0 3 7 8 8 8 8 8 8
///
/// An empty piece repeats a boundary. If `out` does not have room for all repeated boundaries, no
/// repeated boundary is written.
///
/// @param joined  joined(before, after) is true if `after` continues the document of `before`
/// @param out     [seq_len + 1]
/// @pre the pieces have at most seq_len + extra_token tokens; seq_len <= 2^31 - 1
template <class Joined = pieces_apart>
requires std::predicate<const Joined&, const piece&, const piece&> cu_seqlens_size
fill_cu_seqlens(std::span<const piece> pieces, std::int64_t seq_len, bool extra_token,
                std::span<std::int32_t> out, const Joined& joined = {});

/// Fills in positions that restart at 0 at each boundary.
///
/// @param cu_seqlens    ascending from 0 to position_ids.size(); values may be repeated
/// @param position_ids  [seq_len]
template <class Id>
void fill_position_ids(std::span<const std::int32_t> cu_seqlens, std::span<Id> position_ids);

/// Joins the boundaries of the rows of a micro-batch, for kernels that take the concatenated rows,
/// [1, rows * seq_len]. Takes each row's boundaries up to its first seq_len and adds the offset of
/// the row. There is a single boundary between one row and the next.
///
/// @param rows  [row_count, seq_len + 1], row-major, each row as filled by `fill_cu_seqlens`
/// @param out   [row_count * seq_len + 1]; only the returned number of entries is written
/// @return number of entries
/// @throws config_error  row_count * seq_len does not fit in an int32.
MILLRACE_EXPORT std::int64_t join_cu_seqlens(std::span<const std::int32_t> rows,
                                             std::int64_t seq_len, std::span<std::int32_t> out);

// ---------------------------------------------------------------------------------------------

namespace detail {

/// Writes the boundaries. Omits repeated boundaries unless `twice` is true. Returns false if the
/// boundaries do not fit.
template <class Joined>
bool put_boundaries(std::span<const piece> pieces, std::int64_t seq_len, std::int64_t limit,
                    std::span<std::int32_t> out, const Joined& joined, bool twice,
                    std::size_t& entries) {
  std::int64_t at = 0;
  std::int64_t begin = 0;  // start of the current document
  entries = 1;
  out[0] = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    at += pieces[i].tokens;
    if (i + 1 < pieces.size() && joined(pieces[i], pieces[i + 1])) continue;
    const bool empty = at == begin;
    begin = at;
    const auto end = static_cast<std::int32_t>(std::min(at, limit));
    // If the last document has only the extra token, it gets no boundary.
    if (end == out[entries - 1] && !(twice && empty)) continue;
    if (entries == out.size()) return false;
    out[entries++] = end;
  }
  // Padding belongs to the last document. If there is no document, the padding is a document by
  // itself.
  if (out[entries - 1] < seq_len) {
    if (entries == 1) ++entries;
    out[entries - 1] = static_cast<std::int32_t>(seq_len);
  }
  return true;
}

/// Writes the boundaries of `fill_cu_seqlens`, from the leading 0 to seq_len, and nothing behind
/// them. Returns their number. `out` needs room for pieces.size() + 2 or seq_len + 1 entries,
/// whichever is less.
template <class Joined>
std::size_t write_boundaries(std::span<const piece> pieces, std::int64_t seq_len, bool extra_token,
                             std::span<std::int32_t> out, const Joined& joined) {
  assert(0 < seq_len && seq_len <= std::numeric_limits<std::int32_t>::max());
  assert(out.size() >= std::min(pieces.size() + 2, static_cast<std::size_t>(seq_len) + 1));
  std::int64_t limit = extra_token ? -1 : 0;  // exclude the extra token, which is the last token
  for (const piece& p : pieces) limit += p.tokens;
  limit = std::clamp<std::int64_t>(limit, 0, seq_len);
  std::size_t entries = 0;
  if (!put_boundaries(pieces, seq_len, limit, out, joined, true, entries)) {
    (void)put_boundaries(pieces, seq_len, limit, out, joined, false, entries);
  }
  return entries;
}

/// Returns the number of boundaries up to the first that is seq_len. Empty documents at the end of
/// a row repeat it.
inline std::int64_t count_to_end(std::span<const std::int32_t> boundaries, std::int64_t seq_len) {
  return std::ranges::find(boundaries, static_cast<std::int32_t>(seq_len)) - boundaries.begin() + 1;
}

}  // namespace detail

template <class Joined>
requires std::predicate<const Joined&, const piece&, const piece&> cu_seqlens_size
fill_cu_seqlens(std::span<const piece> pieces, std::int64_t seq_len, bool extra_token,
                std::span<std::int32_t> out, const Joined& joined) {
  assert(static_cast<std::int64_t>(out.size()) == seq_len + 1);
  const std::size_t entries = detail::write_boundaries(pieces, seq_len, extra_token, out, joined);
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(entries), out.end(),
            static_cast<std::int32_t>(seq_len));
  cu_seqlens_size size;
  for (std::size_t i = 1; i < entries; ++i) {
    size.max_seqlen = std::max(size.max_seqlen, out[i] - out[i - 1]);
  }
  size.entries = detail::count_to_end(out.first(entries), seq_len);
  return size;
}

template <class Id>
void fill_position_ids(std::span<const std::int32_t> cu_seqlens, std::span<Id> position_ids) {
  for (std::size_t d = 0; d + 1 < cu_seqlens.size(); ++d) {
    Id* const out = position_ids.data() + cu_seqlens[d];
    const std::int32_t count = cu_seqlens[d + 1] - cu_seqlens[d];
    for (std::int32_t i = 0; i < count; ++i) out[i] = static_cast<Id>(i);
  }
}

}  // namespace millrace::dataset
