// SPDX-License-Identifier: Apache-2.0
//
// Answers the cases of property/dataset/megatron_against_reference.py. For each line of stdin, the
// program builds the caches of a dataset and prints a line of JSON about them to stdout.
//
// The fields of a case, separated by tabs: PREFIX, FOLDER, split (- for none), part (0 to 2),
// sequence length, samples (- for one epoch), seed, extra token (0, 1), drop the last partial
// sample (0, 1), wide sample index (0, 1), wide shuffle index (0, 1), threads, tokenizer as JSON.
// The fields for wide indexes force the wide types, because datasets that need them would be too
// large for a test.
#include <array>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <millrace/dataset/detail/megatron/gpt_cache.hpp>
#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/detail/megatron/split.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/io/file_mapping.hpp>

namespace {

using namespace millrace;
using namespace millrace::dataset;

std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, '\t');) out.push_back(field);
  return out;
}

void print_sample(const gpt_order& order, std::int64_t k) {
  std::vector<piece> pieces;
  const std::int64_t padding = order.sample(k, pieces);
  std::cout << "{\"k\": " << k << ", \"padding\": " << padding << ", \"pieces\": [";
  const char* comma = "";
  for (const piece& p : pieces) {
    std::cout << comma << '[' << p.sequence << ", " << p.first << ", " << p.tokens << ']';
    comma = ", ";
  }
  std::cout << "], \"with\": [";
  comma = "";
  for (const piece& p : pieces) {  // prints the samples that contain the piece's first token
    if (p.tokens == 0) continue;
    for (const std::int64_t other : order.samples_with(p.sequence, p.first)) {
      std::cout << comma << other;
      comma = ", ";
    }
    break;
  }
  std::cout << "]}";
}

void answer(const std::vector<std::string>& field) {
  const std::filesystem::path prefix = field.at(0);
  const io::file_mapping idx_file(prefix.string() + ".idx");
  const formats::mmidx_view idx = formats::parse_mmidx(idx_file.bytes());
  gpt_description description;
  description.dataset_path = field.at(0);
  description.part = split_parts.at(std::stoul(field.at(3)));
  description.sequence_length = std::stoll(field.at(4));
  if (field.at(5) != "-") description.num_samples = std::stoll(field.at(5));
  description.random_seed = static_cast<std::uint32_t>(std::stoul(field.at(6)));
  description.tokenizer = read_python_json(field.at(12));
  sequence_range range{0, idx.sequence_count()};
  if (field.at(2) != "-") {
    description.split = field.at(2);
    range = split_matrix(field.at(2)).of(description.part, idx.sequence_count());
  }
  gpt_request request{description.sequence_length, description.num_samples, description.part,
                      description.random_seed,     field.at(7) == "1",      field.at(8) == "1"};
  gpt_plan plan = plan_gpt_index(
      request, range, count_tokens(idx.lengths, range, idx.lengths_offset()), "the part");
  plan.wide_sample_index = field.at(9) == "1";
  plan.wide_shuffle_index = field.at(10) == "1";

  const gpt_cache cache(field.at(1), description);
  bool built = false;
  const gpt_order order =
      cache.load_or_build(plan, idx.lengths, "the part", std::stoi(field.at(11)), &built);
  std::cout << "{\"samples\": " << order.size() << ", \"epochs\": " << plan.epochs
            << ", \"separate\": " << plan.separate_last_epoch
            << ", \"partial\": " << plan.last_sample_is_partial << ", \"built\": " << built
            << ", \"name\": \"" << description.cache_name() << "\", \"shown\": [";
  const char* comma = "";
  for (const std::int64_t k : {std::int64_t{0}, order.size() / 2, order.size() - 1}) {
    if (k < 0 || k >= order.size()) continue;
    std::cout << comma;
    print_sample(order, k);
    comma = ", ";
  }
  std::cout << "]}" << std::endl;
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    try {
      answer(fields(line));
    } catch (const std::exception& e) {
      std::cout << "{\"refused\": " << python_json::string(e.what()).dump() << '}' << std::endl;
    }
  }
}
