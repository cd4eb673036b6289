// SPDX-License-Identifier: Apache-2.0
#include "dataset_figures.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/tokenizer/detail/special_ids.hpp>

#include "inspect.hpp"
#include "meta.hpp"
#include "progress_line.hpp"

namespace millrace::inspect {

namespace {

/// Refuses datasets whose ids mean different things.
class one_tokenizer {
 public:
  /// @throws config_error  another dataset had another tokenizer
  void expect(const dataset::indexed_dataset& data,
              const std::optional<formats::dataset_meta>& meta) {
    if (!meta) return;
    if (fingerprint_.empty()) {
      fingerprint_ = meta->tokenizer.fingerprint;
      prefix_ = data.prefix().string();
    }
    if (fingerprint_ == meta->tokenizer.fingerprint) return;
    throw config_error(fmt::format(
        "{} and {} were made with different tokenizers, so their ids cannot be counted together; "
        "pass datasets of one tokenizer",
        prefix_, data.prefix().string()));
  }

 private:
  std::string fingerprint_;
  std::string prefix_;
};

/// The bytes of the texts of all tokens that are not special.
std::optional<text_size> text_size_of(const dataset_figures& figures,
                                      const std::vector<std::int32_t>& special) {
  if (!figures.texts) return std::nullopt;
  using texts = formats::token_texts;
  const texts& table = *figures.texts;
  text_size size{.exact = table.start == texts::first_rule::none &&
                          table.runs == texts::byte_rule::none && table.strip_times == 0};
  const auto add = [&](std::int64_t id, std::int64_t times) {
    if (std::ranges::binary_search(special, id)) return;
    size.tokens += times;
    size.bytes += times * static_cast<std::int64_t>(table.inner[table.index_of(id)].size);
  };
  const auto& ids = figures.counts.ids;
  for (std::size_t i = 0; i < ids.by_id.size(); ++i) {
    add(static_cast<std::int64_t>(i), ids.by_id[i]);
  }
  for (const auto& [id, times] : ids.others) add(id, times);
  return size;
}

void add_lengths(formats::json_writer& json, const char* key,
                 const dataset::length_counts& lengths) {
  json.key(key);
  if (lengths.count() == 0) {
    json.null();
    return;
  }
  const auto counts = lengths.by_power_of_two();
  json.open('{').key("empty").value(counts.front()).key("min").value(lengths.min());
  json.key("mean").value(lengths.mean()).key("max").value(lengths.max());
  json.key("quantiles").open('{');
  for (const auto& [q, name] : length_quantiles) json.key(name).value(lengths.quantile(q));
  json.close('}').key("histogram").open('[');
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::int64_t first = i == 0 ? 0 : std::int64_t{1} << (i - 1);
    json.open('{').key("from").value(first).key("to").value(i == 0 ? 0 : 2 * first - 1);
    json.key("count").value(counts[i]).close('}');
  }
  json.close(']').close('}');
}

void add_shares(formats::json_writer& json, const char* key, const char* name,
                const std::vector<dataset::input_share>& shares) {
  json.key(key).open('[');
  for (const dataset::input_share& share : shares) {
    json.open('{').key(name).value(share.input).key("documents").value(share.documents);
    json.key("tokens").value(share.tokens).close('}');
  }
  json.close(']');
}

}  // namespace

std::optional<std::string> dataset_figures::text_of(std::int64_t id) const {
  if (hide_texts) return std::nullopt;
  if (texts) return std::string(texts->text(texts->inner[texts->index_of(id)]));
  if (tokenizer) return tokenizer->decode({&id, 1});
  return std::nullopt;
}

dataset_figures figures_of(const std::vector<dataset::indexed_dataset>& data,
                           dataset_tokenizers& tokenizers, std::optional<std::int64_t> vocab_size,
                           int workers) {
  dataset_figures figures;
  one_tokenizer same;
  std::int64_t total = 0;
  for (const dataset::indexed_dataset& each : data) {
    const auto meta = find_meta(each);
    same.expect(each, meta);
    if (meta) figures.vocab_size = meta->tokenizer.vocab_size;
    figures.tokenizer = tokenizers.find(each);
    total += each.token_count();
  }
  std::map<std::string, dataset::input_share> inputs;
  bool have_inputs = true;
  progress_line progress("counted", "token", total);
  for (const dataset::indexed_dataset& each : data) {
    const std::int64_t before = figures.counts.tokens;
    figures.counts += dataset::statistics_of(
        each, {.workers = workers,
               .progress = [&](std::int64_t done, std::int64_t) { progress.show(before + done); }});
    figures.datasets.push_back({each.prefix().native(), each.document_count(), each.token_count()});
    if (const auto trained = dataset::trained_lengths_of(each)) {
      if (!figures.trained) figures.trained.emplace();
      *figures.trained += *trained;
      figures.masked_tokens += each.token_count();
    }
    const auto shares = dataset::shares_of_inputs(each);
    have_inputs = have_inputs && shares;
    if (!shares) continue;
    for (const dataset::input_share& share : *shares) {
      dataset::input_share& sum = inputs[share.input];
      sum.input = share.input;
      sum.documents += share.documents;
      sum.tokens += share.tokens;
    }
  }
  if (have_inputs && !data.empty()) {
    auto& all = figures.inputs.emplace();
    for (auto& [name, share] : inputs) all.push_back(std::move(share));
    std::ranges::stable_sort(all, std::greater<>(), &dataset::input_share::tokens);
  }
  if (figures.tokenizer) {
    figures.vocab_size = figures.tokenizer->vocab_size();
    figures.texts = figures.tokenizer->token_texts();
    const std::vector<std::int32_t> special = tokenizer::special_ids(*figures.tokenizer);
    figures.special_tokens = 0;
    for (const std::int32_t id : special) *figures.special_tokens += figures.counts.ids.count(id);
    figures.text = text_size_of(figures, special);
  }
  if (vocab_size) figures.vocab_size = vocab_size;
  return figures;
}

void write_figures(formats::json_writer& json, const dataset_figures& figures,
                   std::size_t most_ids) {
  const dataset::dataset_statistics& counts = figures.counts;
  const auto add = [&](const char* key, const std::optional<std::int64_t>& value) {
    json.key(key);
    value ? json.value(*value) : json.null();
  };
  add_shares(json, "datasets", "prefix", figures.datasets);
  json.key("documents").value(counts.documents).key("sequences").value(counts.sequences);
  json.key("tokens").value(counts.tokens);
  add_lengths(json, "document_tokens", counts.document_lengths);
  add_lengths(json, "sequence_tokens", counts.sequence_lengths);
  if (figures.trained) {
    json.key("trained_tokens").value(figures.trained->sum());
    add_lengths(json, "document_trained_tokens", *figures.trained);
  }
  json.key("distinct_ids").value(counts.ids.distinct());
  add("vocab_size", figures.vocab_size);
  add("never_seen", figures.vocab_size ? std::optional(figures.never_seen()) : std::nullopt);
  add("outside_vocab", figures.vocab_size
                           ? std::optional(counts.ids.tokens_outside(*figures.vocab_size))
                           : std::nullopt);
  json.key("entropy_bits").value(counts.ids.entropy());
  add("special_tokens", figures.special_tokens);
  json.key("text");
  if (figures.text) {
    json.open('{').key("bytes").value(figures.text->bytes);
    json.key("tokens").value(figures.text->tokens).key("exact").value(figures.text->exact);
    json.close('}');
  } else {
    json.null();
  }
  json.key("frequent_ids").open('[');
  for (const auto& [id, times] : counts.ids.most_frequent(most_ids)) {
    json.open('{').key("id").value(id).key("count").value(times);
    if (const auto text = figures.text_of(id)) json.key("text").value(*text);
    json.close('}');
  }
  json.close(']');
  if (figures.inputs) {
    add_shares(json, "inputs", "input", *figures.inputs);
  } else {
    json.key("inputs").null();
  }
}

}  // namespace millrace::inspect
