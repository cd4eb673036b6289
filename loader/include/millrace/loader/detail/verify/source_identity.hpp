// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <millrace/dataset/state.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// Facts about a dataset, from its sidecar files PREFIX.sum and PREFIX.meta.
struct source_identity {
  std::string root = {};        ///< root checksum, from PREFIX.sum; empty if there is none
  std::string tokenizer = {};   ///< fingerprint, from PREFIX.meta; empty if there is none
  std::int64_t vocab_size = 0;  ///< number of ids of that tokenizer; 0: not known
};

/// Reads PREFIX.sum and PREFIX.meta, if they exist (formats/spec/sum.md, meta.md).
///
/// @throws format_error  one of them is invalid, or the `.meta` has another root than the `.sum`
/// @throws io_error      one exists and cannot be read
MILLRACE_EXPORT source_identity identify_source(const std::filesystem::path& prefix);

/// Facts about all datasets of a run together.
struct joint_identity {
  std::string tokenizer = {};    ///< as stored in the state
  std::int64_t vocab_size = 0;   ///< ids are below this; 0: not known, so no check can be made
  std::int64_t without_sum = 0;  ///< number of datasets without a `.sum`
  std::int64_t without_meta = 0;
};

/// Puts the root of each dataset and the fingerprint of their tokenizer into a state. A run that
/// resumes from the state must then have the same bytes and vocabulary (`dataset::require_same`).
///
/// Datasets with different tokenizers are refused, because the same id would mean different text.
/// If they are allowed, the state has all fingerprints, in the order of the datasets, joined by
/// commas. Datasets without a `.meta` are assumed to match.
///
/// @param state  `data` has the prefixes; this function sets `root` in each, and `tokenizer`
/// @param how_to_allow  the advice at the end of the error: how the caller's user allows several
/// @throws config_error  datasets of two tokenizers; the message names one of each
/// @throws format_error, io_error  as identify_source
MILLRACE_EXPORT joint_identity
identify_sources(dataset::run_state& state, bool allow_several_tokenizers = false,
                 std::string_view how_to_allow = "set allow_several_tokenizers");

}  // namespace millrace::loader
