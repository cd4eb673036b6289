// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset/run/state.hpp>
#include <millrace/dataset/sidecar_paths.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/json.hpp>
#include <millrace/loader/verify/stored_sums.hpp>

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
source_identity identify_source(const std::filesystem::path& prefix);

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
run_identity identify_sources(dataset::run_state& state, bool allow_several_tokenizers = false);

// ---------------------------------------------------------------------------------------------

namespace detail {

inline void read_meta(const std::filesystem::path& path, std::string_view text,
                      source_identity& identity) {
  const auto refuse = [&](const std::string& what) { throw format_error(path, 0, what); };
  const formats::json_value meta = [&] {
    try {
      return formats::parse_json(text);
    } catch (const format_error& e) {
      throw e.in(path);
    }
  }();
  if (meta.find("millrace_meta") == nullptr) refuse("not a .meta: it has no \"millrace_meta\"");
  const formats::json_value* tokenizer = meta.find("tokenizer");
  const formats::json_value* value = tokenizer ? tokenizer->find("fingerprint") : nullptr;
  const auto* fingerprint = value ? value->as<std::string>() : nullptr;
  if (fingerprint == nullptr || fingerprint->empty()) {
    refuse("it has no \"tokenizer\" with a \"fingerprint\"");
  }
  identity.tokenizer = *fingerprint;
  const formats::json_value* size = tokenizer->find("vocab_size");
  const auto* vocab_size = size ? size->as<std::int64_t>() : nullptr;
  if (vocab_size == nullptr || *vocab_size < 1) {
    refuse("\"vocab_size\" of its tokenizer is no number of ids");
  }
  identity.vocab_size = *vocab_size;
  const formats::json_value* told = meta.find("sum_root");
  const auto* root = told ? told->as<std::string>() : nullptr;
  // A .sum may be made later, or taken away; two that contradict each other are of two datasets.
  if (root != nullptr && !identity.root.empty() && *root != identity.root) {
    refuse("it tells of the root " + *root + ", but the .sum has " + identity.root);
  }
}

}  // namespace detail

inline source_identity identify_source(const std::filesystem::path& prefix) {
  source_identity identity;
  if (const auto sums = stored_sums::find(prefix)) identity.root = sums->root();
  const auto path = dataset::sidecar_paths(prefix).meta;
  if (const auto file = dataset::map_sidecar(path)) {
    const auto bytes = file->bytes();
    detail::read_meta(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, identity);
  }
  return identity;
}

inline run_identity identify_sources(dataset::run_state& state, bool allow_several_tokenizers) {
  run_identity run;
  const dataset::state_source* first = nullptr;
  std::string first_tokenizer;
  std::vector<std::string> tokenizers;
  for (dataset::state_source& source : state.data) {
    const source_identity identity = identify_source(source.prefix);
    source.root = identity.root;
    run.without_sum += identity.root.empty() ? 1 : 0;
    run.without_meta += identity.tokenizer.empty() ? 1 : 0;
    if (identity.tokenizer.empty()) continue;
    run.vocab_size = std::max(run.vocab_size, identity.vocab_size);
    if (std::ranges::find(tokenizers, identity.tokenizer) != tokenizers.end()) continue;
    tokenizers.push_back(identity.tokenizer);
    if (first == nullptr) {
      first = &source;
    } else if (!allow_several_tokenizers) {
      throw config_error("the datasets are of two tokenizers: " + first->prefix + " has the " +
                         "fingerprint " + tokenizers.front() + ", " + source.prefix + " has " +
                         identity.tokenizer +
                         ", and an id of one is another text in the other: tokenize them alike, "
                         "or set allow_several_tokenizers");
    }
  }
  for (const std::string& tokenizer : tokenizers) {
    run.tokenizer += (run.tokenizer.empty() ? "" : ",") + tokenizer;
  }
  // Of some datasets alone it would say nothing of the largest id.
  if (run.without_meta > 0) run.vocab_size = 0;
  state.tokenizer = run.tokenizer;
  return run;
}

}  // namespace millrace::loader
