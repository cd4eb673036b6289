// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace millrace::preprocess {

/// A number and its standard error: the true value is within `value` +- `error` in about two of
/// three cases.
struct estimate {
  double value = 0;
  double error = 0;

  estimate& operator+=(const estimate& other) {
    value += other.value;
    error = std::hypot(error, other.error);
    return *this;
  }
};

/// The size of one piece of the input, and an amount in it, such as its number of tokens.
struct sampled_amount {
  double bytes = 0;
  double amount = 0;
};

/// Estimates the amount in an input of `total_bytes` bytes: amount per byte in a sample, times
/// `total_bytes`. The sample consists of `pieces`, which are in input order.
///
/// The error is computed only from the differences between neighboring pieces. Since the pieces are
/// spread evenly, every part of the input is sampled, so differences between distant parts cause no
/// error. The error is 0 if the pieces are the whole input. With a single piece, the error is
/// unknown; it is set to the estimated amount.
inline estimate scaled_up(std::span<const sampled_amount> pieces, const estimate& total_bytes) {
  double bytes = 0;
  double amount = 0;
  for (const sampled_amount& piece : pieces) {
    bytes += piece.bytes;
    amount += piece.amount;
  }
  if (!(bytes > 0)) return {};
  const double ratio = amount / bytes;
  estimate out{.value = ratio * total_bytes.value, .error = ratio * total_bytes.error};
  const double unseen = 1 - bytes / total_bytes.value;
  if (!(unseen > 0)) return out;
  const auto count = static_cast<double>(pieces.size());
  if (pieces.size() < 2) return {out.value, out.value};
  double squares = 0;
  double off_before = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const double off = pieces[i].amount - ratio * pieces[i].bytes;
    if (i > 0) squares += (off - off_before) * (off - off_before) / 2;
    off_before = off;
  }
  // Standard error of the mean amount per piece, for `count` pieces drawn without replacement.
  const double of_mean = std::sqrt(unseen * squares / (count - 1) / count);
  out += {0, of_mean / (bytes / count) * total_bytes.value};
  return out;
}

/// Returns the mean of `values`. The error assumes that the values are a sample of a much larger
/// population.
inline estimate mean_of(std::span<const double> values) {
  if (values.empty()) return {};
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  const double mean = sum / count;
  if (values.size() < 2) return {mean, 0};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / (count - 1) / count)};
}

}  // namespace millrace::preprocess
