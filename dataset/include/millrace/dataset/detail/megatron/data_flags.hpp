// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset/detail/megatron/blend_file.hpp>
#include <millrace/dataset/detail/megatron/blend_list.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Megatron's flags that say which data is used and how it is blended, as they are typed.
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

/// What the flags come to: one blend that is split, or a blend for each part.
struct data_blends {
  std::optional<blend_list> blend;  ///< then `split` is given too
  std::optional<std::string> split;
  part_blends per_part;  ///< where there is no `blend`: at least one
  double surplus = 0.005;
  bool full_validation = false;
  bool multiple_validation_sets = false;
};

/// Sets the flag of that name, e.g. "--data-path".
///
/// @return false: no flag of data has that name
/// @throws config_error  it has too many values or too few, or its value is no number
MILLRACE_EXPORT bool set_data_flag(data_flags& flags, std::string_view flag,
                                   std::span<const std::string> values);

/// Reads the files that are named, and sees whether the flags fit together.
///
/// @throws config_error  no data is named, or in two ways; a flag does not fit the others; a list
/// of
///                       words is no blend
/// @throws io_error, format_error  a file cannot be read, or is not what it is to be
MILLRACE_EXPORT data_blends resolve_data_flags(const data_flags& flags);

}  // namespace millrace::dataset
