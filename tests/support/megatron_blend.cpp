// SPDX-License-Identifier: Apache-2.0
//
// Answers the cases of property/dataset/blends_against_reference.py. Each line of stdin is a case;
// tabs separate its fields. The answer is a line of JSON on stdout. Each WORD is encoded as
// hexadecimal digits, because it may contain any bytes.
//
//   greedy SIZE WEIGHT ...    MD5 of both columns of the blend, computed with two roundings; the
//                             same with one rounding (fused); MD5 of the weights, normalized twice
//   exhaustive LENGTH ...     MD5 of both columns of the exhaustive blend
//   randperm SEED N           MD5 of the permutation as int64
//   float WORD                repr(float(WORD)) of Python, or null if Python raises ValueError
//   data TRAIN VALID TEST FLAG N WORD*N FLAG N WORD*N ...
//                             (numbers of samples, then flags with N words each) the datasets of
//                             each part and, for a blended part, its blend. A dataset with prefix P
//                             has len(P) * 7 samples per epoch
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <numeric>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <millrace/dataset/detail/megatron/blend_plan.hpp>
#include <millrace/dataset/detail/megatron/blend_recipe.hpp>
#include <millrace/dataset/detail/megatron/data_flags.hpp>
#include <millrace/dataset/detail/megatron/greedy_blend.hpp>
#include <millrace/dataset/detail/megatron/normalize.hpp>
#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/detail/megatron/torch_random.hpp>
#include <millrace/dataset/megatron_run.hpp>
#include <millrace/formats/detail/md5.hpp>

#include "support/hex_word.hpp"
#include "support/plain_blend.hpp"

namespace {

using millrace::test::word_of;

using namespace millrace;
using namespace millrace::dataset;
using test::blend_columns;

template <class T>
std::string md5_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return formats::md5_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::string columns_md5(const blend_columns& columns) {
  return md5_of(columns.dataset_index) + md5_of(columns.dataset_sample_index);
}

/// Returns the MD5 of both columns of a greedy blend. Runs every kernel that this processor
/// supports, and returns "the kernels differ" if their results differ.
std::string blended(const std::vector<double>& weights, const std::vector<std::int64_t>& limits,
                    std::int64_t size, blend_rounding rounding) {
  blend_columns columns(size);
  detail::fill_blend_by(detail::greedy_kernel::plain, weights, limits, columns.span(), rounding);
  std::string answer = columns_md5(columns);
  if (detail::is_there(detail::greedy_kernel::avx512)) {
    detail::fill_blend_by(detail::greedy_kernel::avx512, weights, limits, columns.span(), rounding);
    if (columns_md5(columns) != answer) answer = "the kernels differ";
  }
  return answer;
}

std::string greedy(std::span<const std::string> field) {
  std::vector<double> weights;
  for (const std::string& text : field.subspan(1)) weights.push_back(std::stod(text));
  weights = normalize(normalize(weights));
  const std::int64_t size = std::stoll(field[0]);
  return '"' + blended(weights, {}, size, blend_rounding::twice) +
         blended(weights, {}, size, blend_rounding::fused) + md5_of(weights) + '"';
}

std::string exhaustive(std::span<const std::string> field) {
  std::vector<std::int64_t> lengths;
  for (const std::string& text : field) lengths.push_back(std::stoll(text));
  const std::int64_t size = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  blend_columns columns(size);
  fill_exhaustive_blend(lengths, columns.span());
  std::vector<double> weights;
  weights.reserve(lengths.size());
  for (const std::int64_t length : lengths) {
    weights.push_back(static_cast<double>(length) / static_cast<double>(size));
  }
  const std::string answer = blended(weights, lengths, size, blend_rounding::twice);
  return '"' + (answer == columns_md5(columns) ? answer : "the kernels differ") + '"';
}

std::string randperm(std::span<const std::string> field) {
  std::vector<std::int64_t> order(std::stoull(field[1]));
  torch_randperm(std::stoull(field[0]), std::span(order));
  return '"' + md5_of(order) + '"';
}

/// Returns the number of samples of a dataset, computed as in the stub datasets of the script.
std::int64_t length_of(const planned_dataset& each) {
  const auto epoch = static_cast<std::int64_t>(each.prefix.size()) * 7;
  const std::int64_t wanted = each.num_samples.value_or(1);
  return epoch * std::max<std::int64_t>(1, (wanted + epoch - 1) / epoch);
}

python_json identifiers_of(const planned_dataset& each, split_part part) {
  python_json all = python_json::object();
  all.set("path", python_json::string(each.prefix));
  all.set("num_samples",
          each.num_samples ? python_json::integer(*each.num_samples) : python_json());
  all.set("part", python_json::string(name(part)));
  return all;
}

std::string data(std::span<const std::string> field) {
  part_sizes sizes;
  for (std::size_t p = 0; p < 3; ++p) {
    if (field[p] != "-") sizes[p] = std::stoll(field[p]);
  }
  data_flags flags;
  for (std::size_t i = 3; i < field.size();) {
    const std::size_t count = std::stoul(field[i + 1]);
    std::vector<std::string> words;
    for (std::size_t k = 0; k < count; ++k) words.push_back(word_of(field[i + 2 + k]));
    if (!set_data_flag(flags, field[i], words)) throw std::runtime_error("no flag " + field[i]);
    i += 2 + count;
  }
  const data_plan plans = plan_data(resolve_data_flags(flags), sizes);
  python_json answer = python_json::array();
  for (const split_part part : split_parts) {
    const auto& plan = plans[static_cast<std::size_t>(part)];
    if (!plan) {
      answer.push_back({});
      continue;
    }
    std::vector<python_json> identifiers;
    std::vector<std::int64_t> lengths;
    for (const planned_dataset& each : plan->datasets) {
      identifiers.push_back(identifiers_of(each, part));
      lengths.push_back(length_of(each));
    }
    if (!plan->blended) {
      answer.push_back(python_json::array(std::move(identifiers)));
      continue;
    }
    const blend_recipe recipe(*plan, lengths, part);
    blend_columns columns(recipe.size());
    recipe.fill(columns.span());
    const std::string text = recipe.identifiers(std::move(identifiers)).dump();
    answer.push_back(
        python_json::array({python_json::string(text), python_json::string(columns_md5(columns))}));
  }
  std::string line;
  for (const char c : answer.dump()) line += c == '\n' ? ' ' : c;
  return line;
}

std::string answer(const std::vector<std::string>& field) {
  const std::span rest = std::span(field).subspan(1);
  if (field[0] == "greedy") return greedy(rest);
  if (field[0] == "exhaustive") return exhaustive(rest);
  if (field[0] == "randperm") return randperm(rest);
  if (field[0] == "data") return data(rest);
  const auto value = read_python_float(word_of(rest.empty() ? "" : rest[0]));
  return value ? '"' + python_float(*value) + '"' : "null";
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
