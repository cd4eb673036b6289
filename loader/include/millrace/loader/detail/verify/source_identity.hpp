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
  std::string root = {};  ///< root checksum from PREFIX.sum; empty without that file
  /// Fingerprint from PREFIX.meta; empty without that file, and if the tokenizer is not known, as
  /// after `inspect_dataset convert`.
  std::string tokenizer = {};
  std::int64_t vocab_size = 0;  ///< the tokenizer's number of ids; 0: unknown
};

/// Reads PREFIX.sum and PREFIX.meta, if they exist (formats/spec/sum.md, meta.md).
///
/// @throws format_error  a file is invalid, or the root in the `.meta` differs from the root of the
///                       `.sum`
/// @throws io_error      a file exists but cannot be read
MILLRACE_EXPORT source_identity identify_source(const std::filesystem::path& prefix);

/// Facts about all datasets of a run together.
struct joint_identity {
  std::string tokenizer = {};    ///< fingerprints, as stored in the state
  std::int64_t vocab_size = 0;   ///< all ids are below this; 0: unknown, so ids cannot be checked
  std::int64_t without_sum = 0;  ///< number of datasets without a `.sum`
  std::int64_t without_tokenizer = 0;  ///< number of datasets whose tokenizer is not known
};

/// Stores the root checksum of each dataset and the fingerprint of the tokenizer in a state. A run
/// that resumes from this state must have the same data and vocabulary (`dataset::require_same`).
///
/// Throws if the datasets have different tokenizers, because the same id would mean different text.
/// If `allow_several_tokenizers` is true, the state gets every distinct fingerprint, in the order
/// of the datasets, separated by commas. Datasets of an unknown tokenizer are assumed to match.
///
/// @param state  `data` must have the prefixes; this function sets `root` of each source, and
///               `tokenizer`
/// @param how_to_allow  the end of the error message: how the user can allow several tokenizers
/// @throws config_error  the datasets have different tokenizers; the message names two such
///                       datasets
/// @throws format_error, io_error  see `identify_source`
MILLRACE_EXPORT joint_identity
identify_sources(dataset::run_state& state, bool allow_several_tokenizers = false,
                 std::string_view how_to_allow = "set allow_several_tokenizers");

}  // namespace millrace::loader
