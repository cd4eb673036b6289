// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Datasets to blend: prefixes of `.bin` and `.idx`, and a weight for each or for none.
struct blend_list {
  std::vector<std::string> prefixes;
  std::vector<double> weights;  ///< finite and above 0, not normalised; empty: as long as each is

  bool weighted() const noexcept { return !weights.empty(); }
};

/// Megatron's grammar of `--data-path` and its like (get_blend_from_list): an odd number of words
/// are prefixes; an even number are weights and prefixes in turn where every other word, from the
/// first on, is a number as Python's float() reads it, and prefixes where none of these is.
///
/// A prefix that looks like a number is thus taken for a weight; written ./7 it is not. Space
/// around prefixes is dropped.
///
/// @param option  what the words were given by, for messages
/// @throws config_error  no words, an empty prefix, some numbers and some not where weights would
/// be,
///                       a weight that is not finite and above 0
MILLRACE_EXPORT blend_list parse_blend_list(std::span<const std::string> words,
                                            std::string_view option);

/// A text as Python's float() reads it: spaces around, underscores between digits, inf, nan. Digits
/// and spaces are ASCII ones. Nothing where float() would raise ValueError.
MILLRACE_EXPORT std::optional<double> read_python_float(std::string_view text);

// ---------------------------------------------------------------------------------------------

namespace detail {

MILLRACE_EXPORT std::vector<std::string> python_split(std::string_view text);

}  // namespace detail

}  // namespace millrace::dataset
