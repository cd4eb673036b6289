// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <millrace/dataset/state.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// What the sidecars of a dataset say of it.
struct source_identity {
  std::string root = {};        ///< of its bytes, by PREFIX.sum; empty: there is none
  std::string tokenizer = {};   ///< fingerprint, by PREFIX.meta; empty: there is none
  std::int64_t vocab_size = 0;  ///< of that tokenizer; 0: not known
};

/// Reads PREFIX.sum and PREFIX.meta, each if it is there (formats/spec/sum.md, meta.md).
///
/// @throws format_error  one of them is none, or the `.meta` tells of another root
/// @throws io_error      one is there and cannot be read
MILLRACE_EXPORT source_identity identify_source(const std::filesystem::path& prefix);

/// What the datasets of a run have in common.
struct run_identity {
  std::string tokenizer = {};    ///< as in the state
  std::int64_t vocab_size = 0;   ///< ids are below this; 0: not known, so no check can be made
  std::int64_t without_sum = 0;  ///< datasets
  std::int64_t without_meta = 0;
};

/// Puts the root of each dataset and the fingerprint of their tokenizer into a state, so that a run
/// which goes on from it is held to the same bytes and the same vocabulary
/// (`dataset::require_same`).
///
/// Datasets of different tokenizers are refused: an id of one is another text in the next. Where
/// that is allowed, the state has all fingerprints, in the order of the datasets, joined by commas.
/// Datasets without a `.meta` are taken to fit.
///
/// @param state  its `data` has the prefixes; `root` of each and `tokenizer` are written
/// @throws config_error  datasets of two tokenizers; the message names one of each
/// @throws format_error, io_error  as identify_source
MILLRACE_EXPORT run_identity identify_sources(dataset::run_state& state,
                                              bool allow_several_tokenizers = false);

}  // namespace millrace::loader
