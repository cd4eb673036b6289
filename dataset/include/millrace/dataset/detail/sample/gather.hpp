// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

#include <millrace/dataset/detail/sample/field_options.hpp>
#include <millrace/dataset/detail/sample/piece.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// The tokens of a piece, without a copy.
///
/// @pre 0 <= p.sequence < data.sequence_count()
/// @throws format_error  the sequence has too few tokens, for example because the piece is from a
///                       table that was built for another index; or as for
///                       `indexed_dataset::sequence`.
MILLRACE_EXPORT token_view view_of(const indexed_dataset& data, const piece& p);

/// Total number of tokens in the pieces.
inline std::int64_t token_count(std::span<const piece> pieces) noexcept {
  std::int64_t tokens = 0;
  for (const piece& p : pieces) tokens += p.tokens;
  return tokens;
}

/// Fills in the text of a sample: first the concatenated tokens of its pieces, then `pad` up to the
/// end of `out`. Does not allocate; thread-safe.
///
/// If T cannot represent `pad` (e.g. -1 in uint16), zeros are used for padding. The returned number
/// of tokens tells `fill_fields` where the padding begins.
///
/// @param out  T is the stored token type or a wider one, as in `token_view::copy_to`
/// @return the number of tokens from the dataset
/// @throws config_error  the tokens do not fit in `out`, or T cannot represent their type.
/// @throws format_error  as for `view_of`.
template <class T>
std::int64_t gather(const indexed_dataset& data, std::span<const piece> pieces, std::span<T> out,
                    std::int64_t pad = -1);

// ---------------------------------------------------------------------------------------------

namespace detail {

/// Returns `id` as a T, or 0 if T cannot represent it.
template <class T>
constexpr T id_or_zero(std::int64_t id) noexcept {
  return static_cast<std::int64_t>(static_cast<T>(id)) == id ? static_cast<T>(id) : T{};
}

[[noreturn]] inline void throw_piece_outside(const indexed_dataset& data, const piece& p,
                                             std::int64_t length) {
  throw format_error(data.idx_path(),
                     data.index().lengths_offset() + 4 * static_cast<std::uint64_t>(p.sequence),
                     "sequence " + std::to_string(p.sequence) + " has " + std::to_string(length) +
                         " tokens, expected " + std::to_string(p.tokens) + " from token " +
                         std::to_string(p.first) +
                         ": a sample index or a row table belongs to another dataset; remove it, "
                         "so that it is built again");
}

}  // namespace detail

inline token_view view_of(const indexed_dataset& data, const piece& p) {
  const token_view whole = data.sequence(p.sequence);
  const std::int64_t length = whole.size();
  if (p.first < 0 || p.first > length || p.tokens < 0 || p.tokens > length - p.first) [[unlikely]] {
    detail::throw_piece_outside(data, p, length);
  }
  return whole.subview(p.first, p.tokens);
}

template <class T>
std::int64_t gather(const indexed_dataset& data, std::span<const piece> pieces, std::span<T> out,
                    std::int64_t pad) {
  static_assert(std::is_integral_v<T>);
  std::size_t filled = 0;
  for (const piece& p : pieces) {
    const token_view tokens = view_of(data, p);
    const auto count = static_cast<std::size_t>(tokens.size());
    if (count > out.size() - filled) [[unlikely]] {
      throw config_error("the pieces of a sample have " + std::to_string(token_count(pieces)) +
                         " tokens, expected at most the " + std::to_string(out.size()) +
                         " of its text");
    }
    tokens.copy_to(out.subspan(filled, count));
    filled += count;
  }
  std::ranges::fill(out.subspan(filled), detail::id_or_zero<T>(pad));
  return static_cast<std::int64_t>(filled);
}

}  // namespace millrace::dataset
