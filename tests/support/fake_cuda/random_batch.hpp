// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include <millrace/dataset/detail/packing/packed_sample.hpp>
#include <millrace/dataset/detail/sample/cu_seqlens.hpp>
#include <millrace/dataset/detail/sample/fields.hpp>
#include <millrace/loader/cuda/detail/batch_work.hpp>
#include <millrace/loader/detail/batch/slot_layout.hpp>

namespace millrace::test {

/// The arrays that a consumer must find, computed row by row with functions of `dataset`.
struct expected_fields {
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> labels;
  std::vector<std::int64_t> position_ids;
  std::vector<float> loss_mask;
  std::vector<std::int32_t> cu_seqlens;
  std::int32_t max_seqlen = 0;
  std::vector<std::int32_t> segment_ids = {};
  /// packed rows only: `cu_seqlens` without padding; `cu_seqlens` itself includes it
  std::vector<std::int32_t> unpadded = {};
};

/// A slot as the host side of the loader fills it, and the arrays that the device should make from
/// it.
struct random_batch {
  loader::slot_layout layout;
  std::vector<std::byte> slot;  ///< the used bytes of the slot
  std::int64_t boundaries = 0;
  loader::cuda::batch_rules rules;
  expected_fields expected;
  std::int64_t slices = 0;  ///< number of slices; only for a context-parallel rank (`cut_batch`)
};

/// Parameters of random batches.
struct random_shape {
  std::int64_t rows = 3;
  std::int64_t seq_len = 40;
  bool extra_token = true;  ///< ignored for packed rows
  loader::token_width width = loader::token_width::u16;
  double eod_share = 0.1;    ///< share of eod tokens among all tokens
  bool short_rows = true;    ///< some rows end early; some documents are empty
  bool packed = false;       ///< each document is a separate text, followed by padding
  std::int64_t longest = 0;  ///< most tokens per document; 0: no limit
  /// packed documents are padded to a multiple of this number; 0: a random number for each row
  std::int64_t padding = 0;
  bool masked = false;  ///< the slot says where the loss counts
};

namespace detail {

/// Makes the rows of one batch, one after another.
template <class Token>
class random_rows {
 public:
  random_rows(std::mt19937_64& random, const random_shape& shape, random_batch& batch)
      : random_(&random),
        shape_(shape),
        batch_(&batch),
        rows_(static_cast<std::size_t>(batch.layout.rows())),
        seq_len_(static_cast<std::size_t>(batch.layout.seq_len())),
        text_len_(static_cast<std::size_t>(batch.layout.text_len())),
        text_(rows_ * text_len_),
        real_(rows_),
        begin_(rows_ + 1),
        joined_(rows_ * (seq_len_ + 1)) {
    options_.extra_token = batch.layout.extra_token();
    options_.reset_position_ids = by(loader::cuda::position_rule::after_eod);
    options_.eod_mask_loss = batch.rules.eod_mask_loss;
    options_.eod = batch.rules.eod;
    options_.pad = batch.rules.pad;
    expected_fields& out = batch.expected;
    for (auto* array : {&out.tokens, &out.labels, &out.position_ids}) {
      array->resize(rows_ * seq_len_);
    }
    out.loss_mask.resize(rows_ * seq_len_);
    out.segment_ids.resize(rows_ * seq_len_);
    for (std::size_t row = 0; row < rows_; ++row) fill(row);
    if (batch.layout.masked()) mask();
    out.cu_seqlens.resize(rows_ * seq_len_ + 1);
    out.cu_seqlens.resize(static_cast<std::size_t>(
        dataset::join_cu_seqlens(joined_, batch.layout.seq_len(), out.cu_seqlens)));
    store();
  }

 private:
  bool by(loader::cuda::position_rule rule) const { return batch_->rules.positions == rule; }
  std::uint64_t below(std::uint64_t n) { return (*random_)() % n; }
  template <class T>
  std::span<T> part(std::vector<T>& array, std::size_t row, std::size_t length) {
    return std::span(array).subspan(row * length, length);
  }

  void fill(std::size_t row) {
    // The padding gets random tokens, too, so that code that wrongly reads it gives wrong results.
    for (Token& token : part(text_, row, text_len_)) {
      const bool eod = static_cast<double>(below(100000)) < 100000 * shape_.eod_share;
      token = static_cast<Token>(eod ? 7 : below(sizeof(Token) == 2 ? 65536 : 2000000000));
    }
    const auto joined = part(joined_, row, seq_len_ + 1);
    dataset::sample_fields<std::int64_t> fields;
    fields.tokens = part(batch_->expected.tokens, row, seq_len_);
    fields.labels = part(batch_->expected.labels, row, seq_len_);
    fields.loss_mask = part(batch_->expected.loss_mask, row, seq_len_);
    fields.position_ids = part(batch_->expected.position_ids, row, seq_len_);
    const dataset::cu_seqlens_size size =
        shape_.packed ? pack(row, joined, fields) : cut(row, joined, fields);
    batch_->expected.max_seqlen = std::max(batch_->expected.max_seqlen, size.max_seqlen);
    boundaries_.insert(boundaries_.end(), joined.begin(), joined.begin() + size.entries);
    ends_.resize(boundaries_.size(), real_[row]);
    begin_[row + 1] = static_cast<std::int32_t>(boundaries_.size());
    if (by(loader::cuda::position_rule::boundaries)) {
      dataset::fill_position_ids<std::int64_t>(joined, fields.position_ids);
    }
    const auto first = static_cast<std::size_t>(begin_[row]);
    for (std::size_t d = first + 1; d < boundaries_.size(); ++d) {
      for (std::int32_t i = boundaries_[d - 1]; i < std::min(boundaries_[d], ends_[d]); ++i) {
        batch_->expected.segment_ids[row * seq_len_ + static_cast<std::size_t>(i)] =
            static_cast<std::int32_t>(d - first);
      }
    }
  }

  // Masks three in ten positions.
  void mask() {
    const auto words = static_cast<std::size_t>(batch_->layout.counted_words());
    counted_.resize(rows_ * words);
    for (std::size_t at = 0; at < rows_ * seq_len_; ++at) {
      const std::size_t place = at % seq_len_;
      if (below(10) < 3) {
        batch_->expected.loss_mask[at] = 0;
      } else {
        counted_[at / seq_len_ * words + place / 32] |= 1U << (place % 32);
      }
    }
  }

  std::size_t document(std::size_t left) {
    const auto longest = static_cast<std::size_t>(shape_.longest);
    return std::min<std::size_t>(left, 1 + below(longest > 0 ? longest : seq_len_));
  }

  // Makes a row of documents without padding between them.
  dataset::cu_seqlens_size cut(std::size_t row, std::span<std::int32_t> joined,
                               const dataset::sample_fields<std::int64_t>& fields) {
    const bool short_row = shape_.short_rows && below(3) == 0;
    const std::size_t count = short_row ? below(text_len_ + 1) : text_len_;
    real_[row] = static_cast<std::int32_t>(count);
    std::vector<dataset::piece> pieces;
    for (std::size_t left = count; left > 0;) {
      const std::size_t tokens = shape_.short_rows && below(16) == 0 ? 0 : document(left);
      pieces.push_back(
          {static_cast<std::int64_t>(pieces.size()), 0, static_cast<std::int64_t>(tokens)});
      left -= tokens;
    }
    const std::span<const Token> text = part(text_, row, text_len_);
    const auto seq_len = batch_->layout.seq_len();
    dataset::fill_fields<Token, std::int64_t>(text, real_[row], seq_len, options_, fields);
    return dataset::fill_cu_seqlens(pieces, seq_len, options_.extra_token, joined);
  }

  // Makes a packed row, in which each document is padded.
  dataset::cu_seqlens_size pack(std::size_t row, std::span<std::int32_t> joined,
                                const dataset::sample_fields<std::int64_t>& fields) {
    constexpr std::size_t paddings[] = {1, 4, 16};
    std::size_t pad_to = paddings[below(3)];
    if (shape_.padding > 0) pad_to = static_cast<std::size_t>(shape_.padding);
    if (pad_to > seq_len_) pad_to = 1;
    std::vector<dataset::packed_part> parts;
    ends_.push_back(0);
    unpadded_.push_back(tokens_);
    if (row == 0) batch_->expected.unpadded.push_back(0);
    for (std::size_t at = 0; seq_len_ - at >= pad_to;) {
      dataset::packed_part part{};
      part.tokens = static_cast<std::int64_t>(document((seq_len_ - at) / pad_to * pad_to));
      ends_.push_back(static_cast<std::int32_t>(at) + static_cast<std::int32_t>(part.tokens));
      tokens_ += static_cast<std::int32_t>(part.tokens);
      unpadded_.push_back(tokens_);
      batch_->expected.unpadded.push_back(tokens_);
      at += static_cast<std::size_t>(dataset::share_of(part, static_cast<std::int64_t>(pad_to)));
      parts.push_back(part);
      if (shape_.short_rows && below(4 + seq_len_ / 8) == 0) break;
    }
    real_[row] = static_cast<std::int32_t>(seq_len_);
    const auto padding = static_cast<std::int64_t>(pad_to);
    const std::span<const Token> text = part(text_, row, text_len_);
    dataset::fill_packed_fields<Token, std::int64_t>(text, parts, padding, options_, fields);
    return dataset::fill_packed_cu_seqlens(parts, batch_->layout.seq_len(), padding, joined);
  }

  void store() {
    random_batch& batch = *batch_;
    batch.boundaries = static_cast<std::int64_t>(boundaries_.size());
    batch.slot.resize(batch.layout.used_bytes(batch.boundaries));
    const auto put = [&](std::size_t offset, const auto& array) {
      std::memcpy(batch.slot.data() + offset, array.data(), array.size() * sizeof(array[0]));
    };
    put(batch.layout.text_offset(), text_);
    put(batch.layout.real_offset(), real_);
    put(batch.layout.boundary_begin_offset(), begin_);
    put(batch.layout.boundaries_offset(), boundaries_);
    if (shape_.packed) put(batch.layout.document_ends_offset(batch.boundaries), ends_);
    if (shape_.packed) put(batch.layout.unpadded_ends_offset(batch.boundaries), unpadded_);
    if (!counted_.empty()) put(batch.layout.counted_offset(batch.boundaries), counted_);
  }

  std::mt19937_64* random_;
  random_shape shape_;
  random_batch* batch_;
  std::size_t rows_;
  std::size_t seq_len_;
  std::size_t text_len_;
  std::vector<Token> text_;
  std::vector<std::int32_t> real_;
  std::vector<std::int32_t> begin_;
  std::vector<std::int32_t> joined_;
  std::vector<std::int32_t> boundaries_;
  // [i]: where the padding begins in the document that ends at boundaries_[i]
  std::vector<std::int32_t> ends_;
  std::int32_t tokens_ = 0;             // in the packed documents so far
  std::vector<std::int32_t> unpadded_;  // [i]: of them, before boundaries_[i]
  std::vector<std::uint32_t> counted_;
  dataset::field_options options_;
};

}  // namespace detail

/// @param rules  use eod = 7 here if batches should contain eod tokens
inline random_batch make_random_batch(std::mt19937_64& random, const random_shape& shape,
                                      const loader::cuda::batch_rules& rules) {
  const bool extra_token = shape.extra_token && !shape.packed;
  random_batch batch{loader::slot_layout(shape.rows, shape.seq_len, extra_token, shape.width,
                                         shape.packed, 1, shape.masked),
                     {},
                     0,
                     rules,
                     {}};
  if (shape.width == loader::token_width::u16) {
    detail::random_rows<std::uint16_t>(random, shape, batch);
  } else {
    detail::random_rows<std::int32_t>(random, shape, batch);
  }
  return batch;
}

/// Returns all combinations of rules.
inline std::vector<loader::cuda::batch_rules> all_rules() {
  using loader::cuda::position_rule;
  std::vector<loader::cuda::batch_rules> result;
  for (const auto positions :
       {position_rule::row, position_rule::after_eod, position_rule::boundaries}) {
    for (const std::int64_t pad : {-1, 7, 11}) {
      for (const bool mask : {false, true}) {
        result.push_back({.eod = 7, .pad = pad, .eod_mask_loss = mask, .positions = positions});
      }
    }
  }
  return result;
}

}  // namespace millrace::test
