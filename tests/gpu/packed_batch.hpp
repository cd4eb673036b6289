// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include <millrace/dataset/detail/packing/packed_sample.hpp>
#include <millrace/dataset/detail/sample/cu_seqlens.hpp>

#include "support/fake_cuda/random_batch.hpp"

namespace millrace::test {

/// Parameters of random batches of packed rows.
struct packed_shape {
  std::int64_t rows = 3;
  std::int64_t seq_len = 40;  ///< a multiple of pad_to
  loader::token_width width = loader::token_width::u16;
  std::int64_t pad_to = 1;          ///< documents are padded to a multiple of this
  std::int64_t most_tokens = 1000;  ///< most tokens in a document
  double eod_share = 0.1;
};

namespace detail {

inline std::vector<dataset::packed_part> draw_parts(std::mt19937_64& random,
                                                    const packed_shape& shape) {
  std::vector<dataset::packed_part> parts;
  for (std::int64_t left = shape.seq_len; left > 0 && (parts.empty() || random() % 16 != 0);) {
    const auto most = static_cast<std::uint64_t>(std::min(left, shape.most_tokens));
    dataset::packed_part part{};
    part.tokens = 1 + static_cast<std::int64_t>(random() % most);
    left -= dataset::share_of(part, shape.pad_to);
    parts.push_back(part);
  }
  return parts;
}

template <class Token>
void fill_packed(std::mt19937_64& random, const packed_shape& shape,
                 const loader::cuda::batch_rules& rules, random_batch& batch) {
  const auto rows = static_cast<std::size_t>(shape.rows);
  const auto seq_len = static_cast<std::size_t>(shape.seq_len);
  std::vector<Token> text(rows * seq_len);
  for (Token& token : text) {
    const bool eod = static_cast<double>(random() % 1000) < 1000 * shape.eod_share;
    token = static_cast<Token>(eod ? 7 : random() % (sizeof(Token) == 2 ? 65536 : 2000000000));
  }
  const std::vector<std::int32_t> real(rows, static_cast<std::int32_t>(seq_len));
  std::vector<std::int32_t> begin(rows + 1), boundaries, ends, joined(rows * (seq_len + 1));
  dataset::field_options options;
  options.extra_token = false;
  options.reset_position_ids = rules.positions == loader::cuda::position_rule::after_eod;
  options.eod_mask_loss = rules.eod_mask_loss;
  options.eod = rules.eod;
  options.pad = rules.pad;
  expected_fields& out = batch.expected;
  for (auto* array : {&out.tokens, &out.labels, &out.position_ids}) array->resize(text.size());
  out.loss_mask.resize(text.size());
  for (std::size_t row = 0; row < rows; ++row) {
    const std::vector<dataset::packed_part> parts = draw_parts(random, shape);
    const auto row_joined = std::span(joined).subspan(row * (seq_len + 1), seq_len + 1);
    const auto size =
        dataset::fill_packed_cu_seqlens(parts, shape.seq_len, shape.pad_to, row_joined);
    out.max_seqlen = std::max(out.max_seqlen, size.max_seqlen);
    boundaries.insert(boundaries.end(), row_joined.begin(), row_joined.begin() + size.entries);
    begin[row + 1] = static_cast<std::int32_t>(boundaries.size());
    ends.push_back(0);
    std::int64_t at = 0;
    for (const dataset::packed_part& part : parts) {
      ends.push_back(static_cast<std::int32_t>(at + part.tokens));
      at += dataset::share_of(part, shape.pad_to);
    }
    const auto part_of = [&](auto& array) {
      return std::span(array).subspan(row * seq_len, seq_len);
    };
    const dataset::sample_fields<std::int64_t> fields = {part_of(out.tokens), part_of(out.labels),
                                                         part_of(out.loss_mask),
                                                         part_of(out.position_ids)};
    dataset::fill_packed_fields<Token, std::int64_t>(
        std::span(text).subspan(row * seq_len, seq_len), parts, shape.pad_to, options, fields);
  }
  out.cu_seqlens.resize(text.size() + 1);
  out.cu_seqlens.resize(
      static_cast<std::size_t>(dataset::join_cu_seqlens(joined, shape.seq_len, out.cu_seqlens)));
  batch.boundaries = static_cast<std::int64_t>(boundaries.size());
  batch.slot.resize(batch.layout.used_bytes(batch.boundaries));
  const auto put = [&](std::size_t offset, const auto& array) {
    std::memcpy(batch.slot.data() + offset, array.data(), array.size() * sizeof(array[0]));
  };
  put(batch.layout.text_offset(), text);
  put(batch.layout.real_offset(), real);
  put(batch.layout.boundary_begin_offset(), begin);
  put(batch.layout.boundaries_offset(), boundaries);
  put(batch.layout.document_ends_offset(batch.boundaries), ends);
}

}  // namespace detail

/// Makes a batch of packed rows, and the fields that `dataset` makes of it.
inline random_batch make_packed_batch(std::mt19937_64& random, const packed_shape& shape,
                                      const loader::cuda::batch_rules& rules) {
  random_batch batch{
      loader::slot_layout(shape.rows, shape.seq_len, false, shape.width, true), {}, 0, rules, {}};
  if (shape.width == loader::token_width::u16) {
    detail::fill_packed<std::uint16_t>(random, shape, rules, batch);
  } else {
    detail::fill_packed<std::int32_t>(random, shape, rules, batch);
  }
  return batch;
}

}  // namespace millrace::test
