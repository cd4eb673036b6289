// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace::test {

/// Megatron's attention mask. For each token of a sample, it defines which tokens this token may
/// attend to. The loader gives a trainer `cu_seqlens` or position ids instead of a mask. Tests
/// compare both with this mask.
class attention_mask {
 public:
  /// A causal mask: each token sees itself and all tokens before it.
  explicit attention_mask(std::int64_t seq_len) : starts_(static_cast<std::size_t>(seq_len)) {}

  /// Megatron's mask with `reset_attention_mask`: a token after an eod sees neither that eod nor
  /// any token before it. An eod belongs to the document that it ends.
  template <class Token>
  static attention_mask by_eod(std::span<const Token> tokens, std::int64_t eod) {
    attention_mask mask(static_cast<std::int64_t>(tokens.size()));
    std::int64_t start = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      mask.starts_[i] = start;
      if (static_cast<std::int64_t>(tokens[i]) == eod) start = static_cast<std::int64_t>(i) + 1;
    }
    return mask;
  }

  /// A mask in which each entry of `cu_seqlens` separates two documents, so that no token sees a
  /// token of another document. The entries ascend from 0 to the sequence length.
  static attention_mask by_cu_seqlens(std::span<const std::int32_t> cu_seqlens) {
    attention_mask mask(cu_seqlens.back());
    for (std::size_t d = 0; d + 1 < cu_seqlens.size(); ++d) {
      for (std::int32_t i = cu_seqlens[d]; i < cu_seqlens[d + 1]; ++i) {
        mask.starts_[static_cast<std::size_t>(i)] = cu_seqlens[d];
      }
    }
    return mask;
  }

  /// Returns whether token j is hidden from token i. As in Megatron, the value true means hidden.
  ///
  /// @pre 0 <= i, j < seq_len
  bool operator()(std::int64_t i, std::int64_t j) const noexcept {
    return j > i || j < starts_[static_cast<std::size_t>(i)];
  }

 private:
  std::vector<std::int64_t> starts_;  // [seq_len]: index of the first token that each token sees
};

}  // namespace millrace::test
