// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstdint>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Divides the token stream of a dataset, in stored order, into windows of `seq_len` tokens plus
/// one token for the labels. Neighboring windows share one token. An incomplete last window is
/// dropped.
///
///   stream    0 1 2 3 4 5 6 7 8        seq_len 3: windows 0 1 2 3 | 3 4 5 6; tokens 7, 8 dropped
///
/// Windows ignore document boundaries. A view: the dataset must outlive it. Thread-safe.
class MILLRACE_EXPORT token_windows {
 public:
  /// @throws config_error  `seq_len` is below 1, the dataset has less than one window, or its
  ///                       tokens are not integers.
  token_windows(const indexed_dataset& dataset, std::int64_t seq_len);
  token_windows(const indexed_dataset&&, std::int64_t) = delete;

  std::int64_t count() const noexcept { return count_; }
  std::int64_t seq_len() const noexcept { return seq_len_; }

  /// Tokens k * seq_len to (k + 1) * seq_len, inclusive: seq_len + 1 tokens.
  ///
  /// @pre 0 <= k < count()
  token_view operator[](std::int64_t k) const noexcept {
    assert(0 <= k && k < count_);
    return stream_.subview(k * seq_len_, seq_len_ + 1);
  }

 private:
  token_view stream_;
  std::int64_t seq_len_;
  std::int64_t count_ = 0;
};

}  // namespace millrace::dataset
