// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <millrace/dataset/detail/sample/fields.hpp>

/// nvcc compiles this file for the device, too.
#if defined(__CUDACC__)
#define MILLRACE_HOST_DEVICE __host__ __device__
#else
#define MILLRACE_HOST_DEVICE
#endif

namespace millrace::loader::cuda {

/// The tokens at which position ids restart from 0.
enum class position_rule : std::uint8_t {
  row,         ///< the first token of the row; in a packed row, of each document
  after_eod,   ///< as `row`, and also the token after each eod, as Megatron's `reset_position_ids`
  boundaries,  ///< each document boundary, as in `dataset::fill_position_ids`
};

/// How to make fields from a text: `dataset::field_options` in the form used on the device.
struct batch_rules {
  std::int64_t eod = dataset::no_token;
  std::int64_t pad = -1;
  bool eod_mask_loss = false;
  position_rule positions = position_rule::row;
};

/// Returns the rules for `options`.
///
/// @param at_boundaries  if true, position ids restart at document boundaries, whatever `options`
///                       says
inline batch_rules rules_of(const dataset::field_options& options, bool at_boundaries = false) {
  batch_rules rules;
  rules.eod = options.eod;
  rules.pad = options.pad;
  rules.eod_mask_loss = options.eod_mask_loss;
  if (options.reset_position_ids) rules.positions = position_rule::after_eod;
  if (at_boundaries) rules.positions = position_rule::boundaries;
  return rules;
}

/// The type of tokens, labels and position ids.
enum class id_width : std::uint8_t { i32 = 4, i64 = 8 };

/// The slices of rows, if rows are cut into slices (`slot_layout`). Otherwise, all pointers are
/// null.
struct slice_arrays {
  std::int64_t count = 0;  ///< entries of each array except `begin`
  const std::int32_t* begin = nullptr;
  const std::int32_t* ends = nullptr;
  const std::int32_t* real_ends = nullptr;
  const std::int32_t* next = nullptr;
  const std::int32_t* origins = nullptr;
  const std::int32_t* documents = nullptr;
};

/// One micro-batch to make: the addresses of a slot's arrays (`slot_layout`) and of the fields to
/// write. Plain data, passed to the kernel by value. Indices of tokens and boundaries fit in an
/// int32, as `slot_layout` ensures.
struct batch_work {
  const void* text = nullptr;  ///< u16 or i32 [rows, text_len]
  const std::int32_t* real = nullptr;
  const std::int32_t* boundary_begin = nullptr;
  const std::int32_t* boundaries = nullptr;
  const std::int32_t* document_ends = nullptr;  ///< null if rows are not packed
  const std::int32_t* unpadded_ends = nullptr;  ///< null if rows are not packed

  const std::uint32_t* counted = nullptr;  ///< null without masks
  std::int64_t counted_words = 0;          ///< words of a row of `counted`

  slice_arrays slices;  ///< of rows that are cut into slices
  /// number of ranks that share a row; `boundaries` describes whole rows
  std::int64_t context_parallel = 1;

  std::int64_t rows = 0;
  std::int64_t seq_len = 0;
  std::int64_t text_len = 0;
  std::int64_t boundary_count = 0;  ///< entries of `boundaries`; 0 if they were not requested
  bool narrow = true;               ///< true if text is u16, false if it is i32
  id_width ids = id_width::i64;
  batch_rules rules;

  // Each array is [rows, seq_len], or null if it is not requested. The first three have the type
  // `ids`.
  void* tokens = nullptr;
  void* labels = nullptr;
  void* position_ids = nullptr;
  float* loss_mask = nullptr;
  std::int32_t* segment_ids = nullptr;
  /// Boundaries as `dataset::join_cu_seqlens` makes them, or null. The unused entries, from index
  /// `cu_seqlens_used()`, repeat the last used entry. If `cu_seqlens_padded` is not null, that
  /// array has the boundaries, and `cu_seqlens` does not count padding.
  std::int32_t* cu_seqlens = nullptr;
  std::int32_t* cu_seqlens_padded = nullptr;
  std::int64_t cu_seqlens_size = 0;  ///< entries of each, at least `cu_seqlens_used`
  /// Work memory of the kernels, for rows longer than `look_back_tokens`. May be null without such
  /// rows.
  std::int32_t* marks = nullptr;

  bool packed() const noexcept { return document_ends != nullptr; }
  MILLRACE_HOST_DEVICE bool has_cu_seqlens() const noexcept {
    return cu_seqlens != nullptr || cu_seqlens_padded != nullptr;
  }
  MILLRACE_HOST_DEVICE bool cut() const noexcept { return slices.begin != nullptr; }
  /// Number of boundaries of all rows, concatenated. Two adjacent rows share one boundary.
  std::int64_t cu_seqlens_used() const noexcept {
    return boundary_count == 0 ? 0 : boundary_count - rows + 1;
  }
};

/// Functions for one element of the arrays. The kernels and the host path share them.
namespace element {

/// The document that a token belongs to, or the whole row. With context parallelism, this is a
/// slice instead.
struct document {
  std::int32_t begin;  ///< index of its first token in the row
  std::int32_t end;    ///< index of its first padding token
  /// 1 for the first document of the row; for a slice, its index in `slice_arrays`
  std::int32_t number;
};

/// Returns the value of token i: `*stored`, or `pad` if the token is padding.
MILLRACE_HOST_DEVICE inline std::int64_t token_at(const batch_rules& rules, const document& of,
                                                  std::int32_t i, const std::int32_t* stored) {
  return i < of.end ? *stored : rules.pad;
}

/// Returns a token or label as an id for the model.
template <class Id>
MILLRACE_HOST_DEVICE inline Id id_of(const batch_rules& rules, std::int64_t token) {
  return token == rules.pad ? Id{0} : static_cast<Id>(token);
}

/// Whether the masks of the datasets let the loss of token i count.
MILLRACE_HOST_DEVICE inline bool is_counted(const batch_work& work, std::int32_t row,
                                            std::int32_t i) {
  return work.counted == nullptr ||
         (work.counted[row * work.counted_words + i / 32] >> (i % 32) & 1U) != 0;
}

/// Returns the loss of token i, without regard to masks.
MILLRACE_HOST_DEVICE inline float loss_of(const batch_rules& rules, std::int64_t token,
                                          std::int64_t next) {
  const bool off = next == rules.pad || (rules.eod_mask_loss && token == rules.eod);
  return off ? 0.0F : 1.0F;
}

/// Returns the segment id of token i: the number of its document, or 0 for padding.
MILLRACE_HOST_DEVICE inline std::int32_t segment_of(const batch_work& work, const document& of,
                                                    std::int32_t i) {
  if (i >= of.end) return 0;
  return work.cut() ? work.slices.documents[of.number] : of.number;
}

/// Returns the address of the token after token i. This is `following`, unless token i is the last
/// token of a slice.
MILLRACE_HOST_DEVICE inline const std::int32_t* next_of(const batch_work& work, const document& of,
                                                        std::int32_t i,
                                                        const std::int32_t* following) {
  const bool ends = work.cut() && i + 1 == work.slices.ends[of.number];
  return ends ? work.slices.next + of.number : following;
}

/// Returns the index in the row from which a token of the document counts its position id. The
/// position id is the token's own index minus this index.
///
/// @param restart  index of the token after the last eod if position ids restart there, else 0
MILLRACE_HOST_DEVICE inline std::int32_t start_of(const batch_work& work, const document& of,
                                                  std::int32_t restart) {
  if (work.cut()) return restart > of.begin ? restart : work.slices.origins[of.number];
  const bool by_document =
      work.document_ends != nullptr || work.rules.positions == position_rule::boundaries;
  return by_document && restart < of.begin ? of.begin : restart;
}

/// Writes entry `e` of `cu_seqlens` and `cu_seqlens_padded`.
///
/// @param boundary  a boundary as a position in the concatenated rows
/// @param unpadded  the tokens before it that are not padding; used only if both arrays are wanted
MILLRACE_HOST_DEVICE inline void put_entry(const batch_work& work, std::int64_t e,
                                           std::int32_t boundary, std::int32_t unpadded) {
  if (work.cu_seqlens_padded != nullptr) {
    work.cu_seqlens_padded[e] = boundary;
    boundary = unpadded;
  }
  if (work.cu_seqlens != nullptr) work.cu_seqlens[e] = boundary;
}

/// Writes the entry of boundary `b` of a row.
///
/// @param b  index in `boundaries`; must not be the row's first boundary
MILLRACE_HOST_DEVICE inline void put_boundary(const batch_work& work, std::int64_t row,
                                              std::int64_t b) {
  const std::int64_t whole = work.seq_len * work.context_parallel;
  const std::int32_t unpadded = work.unpadded_ends == nullptr ? 0 : work.unpadded_ends[b];
  put_entry(work, b - row, static_cast<std::int32_t>(row * whole) + work.boundaries[b], unpadded);
}

/// Writes an unused entry, which repeats the last one.
MILLRACE_HOST_DEVICE inline void put_unused_entry(const batch_work& work, std::int64_t e) {
  const std::int64_t tokens = work.rows * work.seq_len * work.context_parallel;
  const std::int32_t unpadded =
      work.unpadded_ends == nullptr ? 0 : work.unpadded_ends[work.boundary_count - 1];
  put_entry(work, e, static_cast<std::int32_t>(tokens), unpadded);
}

}  // namespace element
}  // namespace millrace::loader::cuda
