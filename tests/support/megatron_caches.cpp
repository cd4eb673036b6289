// SPDX-License-Identifier: Apache-2.0
//
// Answers the cases of property/dataset/blend_caches_against_reference.py. Each line of stdin is a
// case; tabs separate its fields. The answer is a line of JSON on stdout. For each case, the
// program writes the missing caches of a run to a folder, as `inspect_dataset prepare-cache` does,
// and reads some samples through the caches.
//
// The fields of a case: FOLDER, three numbers of samples (- for one epoch), sequence length, seed,
// extra token (0, 1), drop the last partial sample (0, 1), wide sample index (0, 1), wide shuffle
// index (0, 1), threads, tokenizer as JSON, then the data flags. Each data flag is FLAG N WORD*N,
// with the words in hexadecimal. The fields for wide indexes force the wide types, because datasets
// that need them would be too large for a test.
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/megatron/blend_cache.hpp>
#include <millrace/dataset/detail/megatron/blend_plan.hpp>
#include <millrace/dataset/detail/megatron/blend_recipe.hpp>
#include <millrace/dataset/detail/megatron/data_flags.hpp>
#include <millrace/dataset/detail/megatron/prepare_gpt_cache.hpp>
#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/megatron_run.hpp>

#include "support/hex_word.hpp"

namespace {

using millrace::test::word_of;

using namespace millrace;
using namespace millrace::dataset;

struct question {
  gpt_cache_options options;
  part_sizes sizes;
  bool wide_sample_index;
  bool wide_shuffle_index;
  data_blends data;
};

question question_of(const std::vector<std::string>& field) {
  question q;
  q.options.folder = field.at(0);
  for (std::size_t p = 0; p < 3; ++p) {
    if (field.at(1 + p) != "-") q.sizes[p] = std::stoll(field[1 + p]);
  }
  q.options.sequence_length = std::stoll(field.at(4));
  q.options.random_seed = static_cast<std::uint32_t>(std::stoul(field.at(5)));
  q.options.add_extra_token = field.at(6) == "1";
  q.options.drop_last_partial_validation_sequence = field.at(7) == "1";
  q.wide_sample_index = field.at(8) == "1";
  q.wide_shuffle_index = field.at(9) == "1";
  q.options.threads = std::stoi(field.at(10));
  q.options.tokenizer = read_python_json(field.at(11));
  data_flags flags;
  for (std::size_t i = 12; i < field.size();) {
    const std::size_t count = std::stoul(field.at(i + 1));
    std::vector<std::string> words;
    for (std::size_t k = 0; k < count; ++k) words.push_back(word_of(field.at(i + 2 + k)));
    if (!set_data_flag(flags, field[i], words)) throw std::runtime_error("no flag " + field[i]);
    i += 2 + count;
  }
  q.data = resolve_data_flags(flags);
  if (q.data.blend) q.options.split = q.data.split;
  return q;
}

/// Same as `prepare_gpt_cache`, but can force wide index types. `prepare_gpt_cache` itself uses
/// them only for datasets with more tokens than a test can have.
std::optional<prepared_gpt_cache> prepare_wide(const question& q, const planned_dataset& each,
                                               split_part part) {
  const gpt_cache_options& o = q.options;
  const indexed_dataset data(each.prefix);
  sequence_range range{0, data.sequence_count()};
  if (o.split) range = split_matrix(*o.split).of(part, data.sequence_count());
  const auto lengths = data.index().lengths;
  prepared_gpt_cache out;
  out.description = {each.prefix,       each.num_samples, part,       o.random_seed,
                     o.sequence_length, o.split,          o.tokenizer};
  out.plan = plan_gpt_index({o.sequence_length, each.num_samples, part, o.random_seed,
                             o.add_extra_token, o.drop_last_partial_validation_sequence},
                            range, count_tokens(lengths, range, 0), each.prefix);
  out.plan.wide_sample_index = q.wide_sample_index;
  out.plan.wide_shuffle_index = q.wide_shuffle_index;
  (void)gpt_cache(o.folder, out.description)
      .load_or_build(out.plan, lengths, each.prefix, o.threads, &out.built);
  return out;
}

python_json number(std::int64_t value) {
  return python_json::integer(value);
}

python_json of_dataset(const prepared_gpt_cache& one) {
  python_json out = python_json::object();
  out.set("name", python_json::string(one.description.cache_name()));
  out.set("built", number(one.built));
  out.set("samples", number(one.plan.samples));
  out.set("epochs", number(one.plan.epochs));
  out.set("separate", number(one.plan.separate_last_epoch));
  out.set("partial", number(one.plan.last_sample_is_partial));
  return out;
}

/// Returns some samples of a run that reads the caches.
python_json shown_of(const question& q, const part_plan& plan, split_part part) {
  const gpt_cache_options& o = q.options;
  const gpt_request request{
      o.sequence_length, std::nullopt,      part,
      o.random_seed,     o.add_extra_token, o.drop_last_partial_validation_sequence};
  const auto run =
      megatron_run::build(plan, request, o.split, 1, megatron_caches{o.folder, o.tokenizer});
  python_json all = python_json::array();
  for (const std::int64_t at : std::set{std::int64_t{0}, run.end() / 3, run.end() - 1}) {
    if (at < 0 || at >= run.end()) continue;
    const source_sample sample = run.at(at);
    std::vector<piece> pieces;
    const std::int64_t padding = run.pieces(sample, pieces);
    python_json list = python_json::array();
    for (const piece& p : pieces) {
      list.push_back(python_json::array({number(p.sequence), number(p.first), number(p.tokens)}));
    }
    all.push_back(python_json::array(
        {number(at), number(sample.source), number(sample.k), std::move(list), number(padding)}));
  }
  return all;
}

python_json of_part(const question& q, const part_plan& plan, split_part part) {
  python_json out = python_json::object();
  python_json datasets = python_json::array();
  std::vector<std::int64_t> lengths;
  std::vector<python_json> identifiers;
  const bool wide = q.wide_sample_index || q.wide_shuffle_index;
  for (const planned_dataset& each : plan.datasets) {
    const auto one = wide ? prepare_wide(q, each, part)
                          : prepare_gpt_cache(q.options, each.prefix, part, each.num_samples);
    lengths.push_back(one->plan.samples);
    identifiers.push_back(one->description.identifiers());
    datasets.push_back(of_dataset(*one));
  }
  out.set("datasets", std::move(datasets));
  if (plan.blended) {
    const blend_recipe recipe(plan, lengths, part);
    const blend_cache cache(q.options.folder, recipe, std::move(identifiers), part);
    bool built = false;
    cache.load_or_build(blend_rounding::twice, &built, check_level::full).verify();
    python_json blend = python_json::object();
    blend.set("name", python_json::string(blend_cache_name(cache.text(), part)));
    blend.set("built", number(built));
    blend.set("samples", number(recipe.size()));
    blend.set("exhaustive", number(recipe.exhaustive()));
    out.set("blend", std::move(blend));
  }
  python_json shown = python_json::array();
  if (plan.blended || plan.datasets.size() == 1) {
    shown.push_back(shown_of(q, plan, part));
  } else {  // several validation sets, each with its own run
    for (const planned_dataset& each : plan.datasets) {
      shown.push_back(shown_of(q, {.datasets = {each}}, part));
    }
  }
  out.set("shown", std::move(shown));
  return out;
}

std::string answer(const std::vector<std::string>& field) {
  const question q = question_of(field);
  const data_plan plans = plan_data(q.data, q.sizes);
  python_json parts = python_json::array();
  for (const split_part part : split_parts) {
    const auto& plan = plans[static_cast<std::size_t>(part)];
    parts.push_back(plan ? of_part(q, *plan, part) : python_json());
  }
  std::string line;
  for (const char c : parts.dump()) line += c == '\n' ? ' ' : c;
  return line;
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<std::string> field;
    std::istringstream in(line);
    for (std::string each; std::getline(in, each, '\t');) field.push_back(each);
    try {
      std::cout << answer(field) << std::endl;
    } catch (const std::exception& e) {
      std::cout << "{\"refused\": " << python_json::string(e.what()).dump() << '}' << std::endl;
    }
  }
}
