// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace millrace::preprocess {

/// `--fim-rate` and the flags that depend on it: documents for fill-in-the-middle training.
struct fim_options {
  double rate = 0;               ///< `--fim-rate`: probability per document, 0 to 1
  double spm_rate = 0.5;         ///< `--fim-spm-rate`: probability of SPM instead of PSM, 0 to 1
  std::uint64_t seed = 0;        ///< `--fim-seed`
  std::string split_token = {};  ///< `--fim-split-sample`, or empty
  double fragment_rate = 0;      ///< `--fim-fragment-rate`, if there is a split token
  std::string no_prefix = {};    ///< `--fim-no-prefix`, or empty
  std::string prefix_token = "<fim_prefix>";
  std::string middle_token = "<fim_middle>";
  std::string suffix_token = "<fim_suffix>";
};

/// The flags and their values, in the order of the journal and of P.meta.
std::vector<std::pair<std::string, std::string>> settings_of(const fim_options& options);

}  // namespace millrace::preprocess
