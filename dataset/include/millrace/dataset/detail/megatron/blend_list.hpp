// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Datasets to blend, each given by its path without `.bin` and `.idx`. Either every dataset has a
/// weight or none has.
struct blend_list {
  std::vector<std::string> prefixes;
  /// Finite and above 0, not normalized. Empty: datasets are blended by their lengths.
  std::vector<double> weights;

  bool weighted() const noexcept { return !weights.empty(); }
};

/// Parses Megatron's grammar for `--data-path` and similar options (`get_blend_from_list`). An odd
/// number of words means that all words are prefixes. With an even number, the 1st, 3rd, 5th, ...
/// words decide: if Python's `float()` accepts all of these words, weights and prefixes alternate.
/// If `float()` accepts none of them, all words are prefixes.
///
/// So a prefix that looks like a number may be read as a weight; write `./7` instead of `7`. Spaces
/// around prefixes are dropped.
///
/// @param option  the option that the words were passed to, for messages
/// @throws config_error  there are no words; a prefix is empty; only some of the words in weight
///                       positions are numbers; a weight is infinite, NaN, or not above 0
MILLRACE_EXPORT blend_list parse_blend_list(std::span<const std::string> words,
                                            std::string_view option);

/// Parses a number as Python's `float()` does. Accepts surrounding spaces, underscores between
/// digits, `inf` and `nan`. Recognizes only ASCII digits and spaces. Returns nullopt if `float()`
/// would raise ValueError.
MILLRACE_EXPORT std::optional<double> read_python_float(std::string_view text);

// ---------------------------------------------------------------------------------------------

namespace detail {

MILLRACE_EXPORT std::vector<std::string> python_split(std::string_view text);

}  // namespace detail

}  // namespace millrace::dataset
