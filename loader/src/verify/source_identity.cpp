// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/verify/source_identity.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset/detail/sidecar_paths.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/json.hpp>
#include <millrace/loader/detail/verify/stored_sums.hpp>

namespace millrace::loader {

namespace detail {

MILLRACE_INLINE void read_meta(const std::filesystem::path& path, std::string_view text,
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
  if (fingerprint == nullptr) refuse("it has no \"tokenizer\" with a \"fingerprint\"");
  identity.tokenizer = *fingerprint;
  const formats::json_value* size = tokenizer->find("vocab_size");
  const auto* vocab_size = size ? size->as<std::int64_t>() : nullptr;
  if (vocab_size == nullptr || *vocab_size < 1) {
    refuse("\"vocab_size\" of its tokenizer is not a number of ids");
  }
  if (!identity.tokenizer.empty()) identity.vocab_size = *vocab_size;
  const formats::json_value* told = meta.find("sum_root");
  const auto* root = told ? told->as<std::string>() : nullptr;
  // The `.sum` may be missing: it may have been removed, or may be created later. If both roots
  // exist and differ, the files belong to different datasets.
  if (root != nullptr && !identity.root.empty() && *root != identity.root) {
    refuse("\"sum_root\" is " + *root + ", but the .sum has " + identity.root);
  }
}

}  // namespace detail

MILLRACE_INLINE source_identity identify_source(const std::filesystem::path& prefix) {
  source_identity identity;
  if (const auto sums = stored_sums::find(prefix)) identity.root = sums->root();
  const auto path = dataset::sidecar_paths(prefix).meta;
  if (const auto file = dataset::map_sidecar(path)) {
    const auto bytes = file->bytes();
    detail::read_meta(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, identity);
  }
  return identity;
}

MILLRACE_INLINE joint_identity identify_sources(dataset::run_state& state,
                                                bool allow_several_tokenizers,
                                                std::string_view how_to_allow) {
  joint_identity run;
  const dataset::state_source* first = nullptr;
  std::string first_tokenizer;
  std::vector<std::string> tokenizers;
  for (dataset::state_source& source : state.data) {
    const source_identity identity = identify_source(source.prefix);
    source.root = identity.root;
    run.without_sum += identity.root.empty() ? 1 : 0;
    run.without_tokenizer += identity.tokenizer.empty() ? 1 : 0;
    if (identity.tokenizer.empty()) continue;
    run.vocab_size = std::max(run.vocab_size, identity.vocab_size);
    if (std::ranges::find(tokenizers, identity.tokenizer) != tokenizers.end()) continue;
    tokenizers.push_back(identity.tokenizer);
    if (first == nullptr) {
      first = &source;
    } else if (!allow_several_tokenizers) {
      throw config_error("the datasets were made with two tokenizers: " + first->prefix +
                         " has the " + "fingerprint " + tokenizers.front() + ", " + source.prefix +
                         " has " + identity.tokenizer +
                         ", so an id means different text in each; use datasets of one tokenizer, "
                         "or " +
                         std::string(how_to_allow));
    }
  }
  for (const std::string& tokenizer : tokenizers) {
    run.tokenizer += (run.tokenizer.empty() ? "" : ",") + tokenizer;
  }
  // Datasets of an unknown tokenizer may contain larger ids, so the vocabulary size is unknown.
  if (run.without_tokenizer > 0) run.vocab_size = 0;
  state.tokenizer = run.tokenizer;
  return run;
}

}  // namespace millrace::loader
