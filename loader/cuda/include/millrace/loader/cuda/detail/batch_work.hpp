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
  row,         ///< the first token of the row or, in a packed row, of the document
  after_eod,   ///< as `row`, and the token after each eod: Megatron's `reset_position_ids`
  boundaries,  ///< each boundary of the index: `dataset::fill_position_ids`
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
/// @param at_boundaries  restart positions at the boundaries of the index instead
inline batch_rules rules_of(const dataset::field_options& options, bool at_boundaries = false) {
  batch_rules rules;
  rules.eod = options.eod;
  rules.pad = options.pad;
  rules.eod_mask_loss = options.eod_mask_loss;
  if (options.reset_position_ids) rules.positions = position_rule::after_eod;
  if (at_boundaries) rules.positions = position_rule::boundaries;
  return rules;
}

/// One micro-batch to make: the addresses of a slot's arrays (`slot_layout`) and of the fields to
/// write. Plain data, passed to the kernel by value.
struct batch_work {
  const void* text = nullptr;  ///< u16 or i32 [rows, text_len]
  const std::int32_t* real = nullptr;
  const std::int32_t* boundary_begin = nullptr;
  const std::int32_t* boundaries = nullptr;
  const std::int32_t* document_ends = nullptr;  ///< for packed rows; null: rows are not packed

  std::int64_t rows = 0;
  std::int64_t seq_len = 0;
  std::int64_t text_len = 0;
  bool narrow = true;  ///< text is u16, else i32
  batch_rules rules;

  // Each is [rows, seq_len], or null if it is not requested.
  std::int64_t* tokens = nullptr;
  std::int64_t* labels = nullptr;
  std::int64_t* position_ids = nullptr;
  float* loss_mask = nullptr;
  /// [boundary_begin[rows] - rows + 1], as from `dataset::join_cu_seqlens`; or null.
  std::int32_t* cu_seqlens = nullptr;
};

/// Functions for one element. Together they are everything that the kernel computes, in code that a
/// host can run, too.
namespace element {

/// Returns the row's last boundary that is not after token i, as an index into `boundaries`.
MILLRACE_HOST_DEVICE inline std::int32_t boundary_before(const batch_work& work, std::int64_t row,
                                                         std::int64_t i) {
  std::int32_t low = work.boundary_begin[row];  // boundaries[low] <= i < boundaries[high]
  std::int32_t high = work.boundary_begin[row + 1] - 1;
  while (high - low > 1) {
    const std::int32_t middle = low + (high - low) / 2;
    if (work.boundaries[middle] <= i) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

/// The range of tokens that a token of a row belongs to. Its padding begins at `end`.
struct share {
  std::int64_t begin;
  std::int64_t end;
};

/// Returns the range of the row or, in a packed row, of the document that contains token i.
MILLRACE_HOST_DEVICE inline share share_at(const batch_work& work, std::int64_t row,
                                           std::int64_t i) {
  if (work.document_ends == nullptr) return {0, work.real[row]};
  const std::int32_t before = boundary_before(work, row, i);
  return {work.boundaries[before], work.document_ends[before + 1]};
}

/// Returns token i of a row, or the pad id if i is in the padding of its share.
template <class Token>
MILLRACE_HOST_DEVICE inline std::int64_t token_at(const batch_work& work, std::int64_t row,
                                                  std::int64_t i, const share& of) {
  if (i >= of.end) return work.rules.pad;
  return static_cast<const Token*>(work.text)[row * work.text_len + i];
}

/// Returns where positions begin if only token i is considered: i + 1 if it is an eod, else 0. The
/// token that has position 0 is the largest such mark among all preceding tokens.
template <class Token>
MILLRACE_HOST_DEVICE inline std::int32_t mark_at(const batch_work& work, std::int64_t row,
                                                 std::int64_t i) {
  const bool eod = token_at<Token>(work, row, i, share_at(work, row, i)) == work.rules.eod;
  return eod ? static_cast<std::int32_t>(i + 1) : 0;
}

/// Writes all fields of token i of a row, 0 <= i < seq_len.
///
/// @param start  index of the token that has position 0 according to token values (eod), or 0
template <class Token>
MILLRACE_HOST_DEVICE inline void put_fields(const batch_work& work, std::int64_t row,
                                            std::int64_t i, std::int64_t start) {
  const share of = share_at(work, row, i);
  const std::int64_t token = token_at<Token>(work, row, i, of);
  const std::int64_t next = token_at<Token>(work, row, i + 1, of);
  const std::int64_t at = row * work.seq_len + i;
  const std::int64_t pad = work.rules.pad;
  if (work.tokens != nullptr) work.tokens[at] = token == pad ? 0 : token;
  if (work.labels != nullptr) work.labels[at] = next == pad ? 0 : next;
  if (work.loss_mask != nullptr) {
    const bool off = next == pad || (work.rules.eod_mask_loss && token == work.rules.eod);
    work.loss_mask[at] = off ? 0.0F : 1.0F;
  }
  if (work.position_ids == nullptr) return;
  std::int64_t first = of.begin;
  if (work.rules.positions == position_rule::boundaries) {
    first = work.boundaries[boundary_before(work, row, i)];
  }
  work.position_ids[at] = i - (first < start ? start : first);
}

/// Writes boundary `b` as a position in the concatenated rows. `b` is an index into `boundaries`;
/// it belongs to this row and is not its first.
MILLRACE_HOST_DEVICE inline void put_boundary(const batch_work& work, std::int64_t row,
                                              std::int64_t b) {
  work.cu_seqlens[b - row] = static_cast<std::int32_t>(row * work.seq_len) + work.boundaries[b];
}

}  // namespace element
}  // namespace millrace::loader::cuda
