// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

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
};

/// A slot as the host side of the loader fills it, and the arrays expected on the device.
struct random_batch {
  loader::slot_layout layout;
  std::vector<std::byte> slot;  ///< the used bytes of the slot
  std::int64_t boundaries = 0;
  loader::cuda::batch_rules rules;
  expected_fields expected;
};

/// Parameters of random batches.
struct random_shape {
  std::int64_t rows = 3;
  std::int64_t seq_len = 40;
  bool extra_token = true;
  loader::token_width width = loader::token_width::u16;
  double eod_share = 0.1;  ///< share of eod tokens among all tokens
  bool short_rows = true;  ///< some rows end early
};

namespace detail {

template <class Token>
void fill_random(std::mt19937_64& random, const random_shape& shape,
                 const loader::cuda::batch_rules& rules, random_batch& batch) {
  const loader::slot_layout& layout = batch.layout;
  const auto seq_len = static_cast<std::size_t>(layout.seq_len());
  const auto text_len = static_cast<std::size_t>(layout.text_len());
  const auto rows = static_cast<std::size_t>(layout.rows());
  std::vector<Token> text(rows * text_len);
  std::vector<std::int32_t> real(rows), begin(rows + 1), boundaries;
  std::vector<std::int32_t> joined(rows * (seq_len + 1));
  dataset::field_options options;
  options.extra_token = shape.extra_token;
  options.reset_position_ids = rules.positions == loader::cuda::position_rule::after_eod;
  options.eod_mask_loss = rules.eod_mask_loss;
  options.eod = rules.eod;
  options.pad = rules.pad;
  expected_fields& out = batch.expected;
  for (auto* array : {&out.tokens, &out.labels, &out.position_ids}) array->resize(rows * seq_len);
  out.loss_mask.resize(rows * seq_len);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t count = shape.short_rows && below(3) == 0 ? below(text_len + 1) : text_len;
    const std::span<Token> here = std::span(text).subspan(row * text_len, text_len);
    for (std::size_t i = 0; i < count; ++i) {
      const bool eod = static_cast<double>(below(1000)) < 1000 * shape.eod_share;
      here[i] = static_cast<Token>(eod ? 7 : below(sizeof(Token) == 2 ? 65536 : 2000000000));
    }
    real[row] = static_cast<std::int32_t>(count);
    std::vector<dataset::piece> pieces;
    for (std::size_t left = count; left > 0;) {
      const std::size_t tokens = std::min<std::size_t>(left, 1 + below(seq_len));
      pieces.push_back(
          {static_cast<std::int64_t>(pieces.size()), 0, static_cast<std::int64_t>(tokens)});
      left -= tokens;
    }
    const std::span<std::int32_t> row_joined =
        std::span(joined).subspan(row * (seq_len + 1), seq_len + 1);
    const auto size =
        dataset::fill_cu_seqlens(pieces, layout.seq_len(), shape.extra_token, row_joined);
    out.max_seqlen = std::max(out.max_seqlen, size.max_seqlen);
    boundaries.insert(boundaries.end(), row_joined.begin(), row_joined.begin() + size.entries);
    begin[row + 1] = static_cast<std::int32_t>(boundaries.size());
    dataset::sample_fields<std::int64_t> fields;
    const auto part = [&](auto& array) { return std::span(array).subspan(row * seq_len, seq_len); };
    fields.tokens = part(out.tokens);
    fields.labels = part(out.labels);
    fields.loss_mask = part(out.loss_mask);
    fields.position_ids = part(out.position_ids);
    dataset::fill_fields<Token, std::int64_t>(here, real[row], layout.seq_len(), options, fields);
    if (rules.positions == loader::cuda::position_rule::boundaries) {
      dataset::fill_position_ids<std::int64_t>(row_joined, fields.position_ids);
    }
  }
  out.cu_seqlens.resize(rows * seq_len + 1);
  out.cu_seqlens.resize(
      static_cast<std::size_t>(dataset::join_cu_seqlens(joined, layout.seq_len(), out.cu_seqlens)));
  batch.boundaries = static_cast<std::int64_t>(boundaries.size());
  batch.slot.resize(layout.used_bytes(batch.boundaries));
  const auto put = [&](std::size_t offset, const auto& array) {
    std::memcpy(batch.slot.data() + offset, array.data(), array.size() * sizeof(array[0]));
  };
  put(layout.text_offset(), text);
  put(layout.real_offset(), real);
  put(layout.boundary_begin_offset(), begin);
  put(layout.boundaries_offset(), boundaries);
}

}  // namespace detail

/// @param rules  use eod = 7 here if batches should contain eod tokens
inline random_batch make_random_batch(std::mt19937_64& random, const random_shape& shape,
                                      const loader::cuda::batch_rules& rules) {
  random_batch batch{loader::slot_layout(shape.rows, shape.seq_len, shape.extra_token, shape.width),
                     {},
                     0,
                     rules,
                     {}};
  if (shape.width == loader::token_width::u16) {
    detail::fill_random<std::uint16_t>(random, shape, rules, batch);
  } else {
    detail::fill_random<std::int32_t>(random, shape, rules, batch);
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
