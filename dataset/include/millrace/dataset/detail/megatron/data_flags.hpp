// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset/detail/megatron/blend_list.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// The blends for train, valid and test, in this order; nullopt for a part without a blend.
using part_blends = std::array<std::optional<blend_list>, 3>;

/// Parses the text of a file for `--per-split-data-args-path`: a JSON object with the keys "train",
/// "valid" and "test". Each value is null, a string of words, or an array of words. In an array,
/// weights may be numbers.
///
/// @param option  as for `parse_blend_list`; messages show it together with the key
/// @throws format_error  the text is not JSON
/// @throws config_error  a key is missing, a value has the wrong type, or its words are not a blend
MILLRACE_EXPORT part_blends read_part_blends(std::string_view json, std::string_view option);

/// Megatron's flags that select the data and define the blend, as the user typed them.
struct data_flags {
  std::optional<std::vector<std::string>> data_path;        ///< --data-path
  std::optional<std::string> data_args_path;                ///< --data-args-path
  std::optional<std::vector<std::string>> train_data_path;  ///< --train-data-path
  std::optional<std::vector<std::string>> valid_data_path;  ///< --valid-data-path
  std::optional<std::vector<std::string>> test_data_path;   ///< --test-data-path
  std::optional<std::string> per_split_data_args_path;      ///< --per-split-data-args-path
  std::optional<std::string> split;                         ///< --split
  double mid_level_dataset_surplus = 0.005;                 ///< --mid-level-dataset-surplus
  bool full_validation = false;                             ///< --full-validation
  bool multiple_validation_sets = false;                    ///< --multiple-validation-sets
};

/// The result of resolving the flags: one blend with a split, or one blend per part.
struct data_blends {
  std::optional<blend_list> blend;  ///< if set, `split` is set too
  std::optional<std::string> split;
  part_blends per_part;  ///< without `blend`, at least one part has a blend
  double surplus = 0.005;
  bool full_validation = false;
  bool multiple_validation_sets = false;
};

/// Sets the flag with the given name, e.g. "--data-path".
///
/// @return false if no data flag has that name
/// @throws config_error  there are too many or too few values, or a value is not a number
MILLRACE_EXPORT bool set_data_flag(data_flags& flags, std::string_view flag,
                                   std::span<const std::string> values);

/// Reads the files that the flags name and checks that the flags are consistent.
///
/// @throws config_error  no data is given, or it is given in two ways; a flag conflicts with the
///                       others; a list of words is not a blend
/// @throws io_error, format_error  a file cannot be read or has the wrong format
MILLRACE_EXPORT data_blends resolve_data_flags(const data_flags& flags);

}  // namespace millrace::dataset
