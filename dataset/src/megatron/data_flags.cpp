// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/data_flags.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/megatron/blend_list.hpp>
#include <millrace/dataset/detail/megatron/split.hpp>
#include <millrace/error.hpp>
#include <millrace/io/file_mapping.hpp>

namespace millrace::dataset {

namespace detail {

MILLRACE_INLINE std::string file_text(const std::string& path) {
  const io::file_mapping file{std::filesystem::path(path)};
  const auto bytes = file.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

MILLRACE_INLINE std::string quoted_words(std::span<const std::string> values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "'" : " '") + value + "'";
  return text;
}

}  // namespace detail

MILLRACE_INLINE bool set_data_flag(data_flags& flags, std::string_view flag,
                                   std::span<const std::string> values) {
  const auto expect = [&](bool fits, const char* expected) {
    if (fits) return;
    throw config_error(std::string(flag) + " is given " +
                       (values.empty() ? "nothing" : detail::quoted_words(values)) + ", expected " +
                       expected);
  };
  const auto words = [&](auto& target) {
    expect(!values.empty(), "prefixes, or alternating weights and prefixes");
    target.emplace(values.begin(), values.end());
    return true;
  };
  const auto text = [&](auto& target, const char* expected) {
    expect(values.size() == 1, expected);
    target = values[0];
    return true;
  };
  const auto on = [&](bool& target) {
    expect(values.empty(), "no value");
    return target = true;
  };
  if (flag == "--data-path") return words(flags.data_path);
  if (flag == "--train-data-path") return words(flags.train_data_path);
  if (flag == "--valid-data-path") return words(flags.valid_data_path);
  if (flag == "--test-data-path") return words(flags.test_data_path);
  if (flag == "--data-args-path") return text(flags.data_args_path, "one file");
  if (flag == "--per-split-data-args-path") return text(flags.per_split_data_args_path, "one file");
  if (flag == "--split") return text(flags.split, "one text such as 969,30,1");
  if (flag == "--full-validation") return on(flags.full_validation);
  if (flag == "--multiple-validation-sets") return on(flags.multiple_validation_sets);
  if (flag != "--mid-level-dataset-surplus") return false;
  const double surplus = values.size() == 1 ? read_python_float(values[0]).value_or(-1.0) : -1.0;
  expect(std::isfinite(surplus) && surplus >= 0, "one number of 0 or more");
  flags.mid_level_dataset_surplus = surplus;
  return true;
}

MILLRACE_INLINE data_blends resolve_data_flags(const data_flags& flags) {
  const std::array<std::pair<const char*, const std::optional<std::vector<std::string>>*>, 3>
      parts = {{{"--train-data-path", &flags.train_data_path},
                {"--valid-data-path", &flags.valid_data_path},
                {"--test-data-path", &flags.test_data_path}}};
  std::vector<std::string> sources;
  if (flags.data_path) sources.emplace_back("--data-path");
  if (flags.data_args_path) sources.emplace_back("--data-args-path");
  if (flags.per_split_data_args_path) sources.emplace_back("--per-split-data-args-path");
  for (const auto& [flag, words] : parts) {
    if (!*words) continue;
    sources.emplace_back(flag);
    break;  // these three flags may be combined, so they count as one
  }
  constexpr const char* one_of =
      "pass one of --data-path, --data-args-path, --per-split-data-args-path, or "
      "--train-data-path, --valid-data-path and --test-data-path";
  if (sources.empty()) throw config_error(std::string("the data is required: ") + one_of);
  if (sources.size() > 1) {
    throw config_error(sources[0] + " and " + sources[1] + " both name the data: " + one_of);
  }

  data_blends blends;
  blends.surplus = flags.mid_level_dataset_surplus;
  blends.full_validation = flags.full_validation;
  blends.multiple_validation_sets = flags.multiple_validation_sets;
  blends.split = flags.split;
  if (flags.data_path) {
    blends.blend = parse_blend_list(*flags.data_path, sources[0]);
    // Keep the spaces of the default, because the split is hashed into the names of caches.
    if (!blends.split) blends.split = split_matrix::default_text;
  } else if (flags.data_args_path) {
    const auto words = detail::python_split(detail::file_text(*flags.data_args_path));
    blends.blend = parse_blend_list(words, "--data-args-path " + *flags.data_args_path);
  } else if (flags.per_split_data_args_path) {
    const std::string& path = *flags.per_split_data_args_path;
    try {
      blends.per_part =
          read_part_blends(detail::file_text(path), "--per-split-data-args-path " + path);
    } catch (const format_error& e) {
      throw e.in(path);
    }
  } else {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto& [flag, words] = parts[i];
      if (*words) blends.per_part[i] = parse_blend_list(**words, flag);
    }
  }

  if (blends.blend && !blends.split) {
    throw config_error("--data-args-path requires --split, for example --split '" +
                       std::string(split_matrix::default_text) + "', the default with --data-path");
  }
  if (blends.blend) (void)split_matrix(*blends.split);
  if (!blends.blend && blends.split) {
    throw config_error("--split '" + *blends.split + "' is given with " + sources[0] +
                       ", which names data for each part: pass only one of the two");
  }
  const std::optional<blend_list>& valid = blends.per_part[1];
  if (!blends.blend && !blends.per_part[0] && !valid && !blends.per_part[2]) {
    throw config_error(sources[0] + " has no blend for train, valid or test");
  }
  if (blends.multiple_validation_sets) {
    if (!valid) {
      throw config_error(
          "--multiple-validation-sets requires separate validation data: pass --valid-data-path or "
          "--per-split-data-args-path");
    }
    if (valid->weighted()) {
      throw config_error(
          "--multiple-validation-sets does not allow validation weights: pass only prefixes, "
          "because each set is used completely");
    }
  }
  if (blends.full_validation) {
    const auto& used = blends.blend ? blends.blend : valid;
    if (used && used->weighted()) {
      throw config_error("--full-validation does not allow weights for the data that it uses, " +
                         sources[0] + ": pass only prefixes, because each sample is used once");
    }
  }
  return blends;
}

}  // namespace millrace::dataset
