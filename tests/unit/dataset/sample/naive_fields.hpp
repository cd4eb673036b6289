// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <millrace/dataset/detail/sample/fields.hpp>
#include <millrace/dataset/detail/sample/piece.hpp>

/// Computes the fields of samples in the simplest way, to compare them with the library's fields.
namespace millrace::test {

using ids = std::vector<std::int64_t>;

struct naive_sample {
  ids tokens, labels, position_ids;
  std::vector<float> loss_mask;
  // masked[i][j] is as in Megatron's attention_mask. Only for texts of up to 40 tokens.
  std::vector<std::vector<bool>> masked;
};

/// @param text  the whole text; padding has the id `options.pad`
inline naive_sample naive_fields(const ids& text, const dataset::field_options& options) {
  naive_sample s;
  const std::size_t seq_len = text.size() - (options.extra_token ? 1 : 0);
  s.tokens.assign(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(seq_len));
  s.labels.assign(text.begin() + 1, text.end());
  if (!options.extra_token) s.labels.push_back(options.pad);
  s.loss_mask.assign(seq_len, 1);
  const std::size_t rows = seq_len <= 40 ? seq_len : 0;
  s.masked.assign(rows, std::vector<bool>(seq_len));
  for (std::size_t i = 0; i < seq_len; ++i) {
    s.position_ids.push_back(static_cast<std::int64_t>(i));
    for (std::size_t j = i + 1; i < rows && j < seq_len; ++j) s.masked[i][j] = true;
  }
  for (std::size_t e = 0; e < seq_len; ++e) {
    if (s.tokens[e] != options.eod) continue;
    if (options.eod_mask_loss) s.loss_mask[e] = 0;
    for (std::size_t i = e + 1; i < seq_len; ++i) {
      if (options.reset_position_ids) s.position_ids[i] = static_cast<std::int64_t>(i - e - 1);
      if (!options.reset_attention_mask || i >= rows) continue;
      for (std::size_t j = 0; j <= e; ++j) s.masked[i][j] = true;
    }
  }
  for (std::size_t i = 0; i < seq_len; ++i) {
    if (s.labels[i] == options.pad) s.loss_mask[i] = 0;
    if (s.labels[i] == options.pad) s.labels[i] = 0;
    if (s.tokens[i] == options.pad) s.tokens[i] = 0;
  }
  return s;
}

/// Returns the fields that `fill_fields` computes from the same text.
template <class Token>
naive_sample filled_fields(const std::vector<Token>& text, std::int64_t real,
                           const dataset::field_options& options) {
  const std::size_t seq_len = text.size() - (options.extra_token ? 1 : 0);
  naive_sample s;
  s.tokens.assign(seq_len, -7);
  s.labels = s.position_ids = s.tokens;
  s.loss_mask.assign(seq_len, -7);
  dataset::fill_fields<Token, std::int64_t>(text, real, static_cast<std::int64_t>(seq_len), options,
                                            {s.tokens, s.labels, s.loss_mask, s.position_ids});
  return s;
}

/// Applies Megatron's rule for `inter_document_masking` to a list of lengths. Stops after the first
/// seq_len tokens.
inline std::vector<std::int32_t> naive_cu_seqlens(std::vector<std::int64_t> lengths,
                                                  std::int64_t seq_len, bool extra_token) {
  if (extra_token && !lengths.empty() && --lengths.back() == 0) lengths.pop_back();
  std::int64_t sum = 0;
  for (const std::int64_t length : lengths) sum += length;
  if (sum < seq_len) {
    if (lengths.empty()) lengths.push_back(0);
    lengths.back() += seq_len - sum;
  }
  std::vector<std::int32_t> ends = {0};
  for (const std::int64_t length : lengths) {
    if (ends.back() == seq_len) break;
    ends.push_back(static_cast<std::int32_t>(ends.back() + length));
  }
  return ends;
}

}  // namespace millrace::test
