// SPDX-License-Identifier: Apache-2.0
//
// Builds the indices of Megatron's GPTDataset. Compares the indices, their descriptions and their
// file names with the entry `gpt` of megatron_golden.json.
#include <millrace/dataset/detail/megatron/gpt_index.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/dataset/detail/megatron/gpt_cache.hpp>
#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/indexed_dataset.hpp>

#include "golden/dataset/megatron_golden.hpp"

namespace millrace::dataset {
namespace {

namespace dom = simdjson::dom;

template <class T>
std::vector<std::int64_t> wide(std::span<const T> values) {
  return {values.begin(), values.end()};
}

template <class Variant>
std::vector<std::int64_t> wide_of(const Variant& array) {
  return std::visit([](const auto& one) { return wide(one.numbers()); }, array);
}

/// Returns the boolean entry `name` of a case, or true if the case has no such entry.
bool flag(dom::object config, std::string_view name) {
  bool value = true;
  return config[name].get(value) == simdjson::SUCCESS ? value : true;
}

/// Returns the entry "tokenizer" of a description.
std::string tokenizer_of(std::string_view description) {
  dom::parser parser;
  const dom::element parsed = parser.parse(simdjson::padded_string(description));
  return simdjson::minify(parsed["tokenizer"].value());
}

TEST(MegatronsGptDatasets, AreRebuilt) {
  if (test::shared_folder().empty()) GTEST_SKIP() << test::no_shared_folder;
  const test::megatron_golden golden;
  const test::temp_folder folder;
  test::megatron_golden::write_corpora(folder.path());
  const indexed_dataset data(folder / "corpus");
  int seen = 0;
  for (const dom::object config : dom::array(golden["gpt"])) {
    const split_matrix split{std::string_view(config["split"])};
    for (const auto [part_name, expected] : dom::object(config["splits"])) {
      SCOPED_TRACE(std::string(std::string_view(config["name"])) + " " + std::string(part_name));
      if (expected.is_null()) continue;
      ++seen;
      const split_part part = part_name == "train"   ? split_part::train
                              : part_name == "valid" ? split_part::valid
                                                     : split_part::test;
      const dom::element size = dom::array(config["sizes"]).at(static_cast<std::size_t>(part));
      gpt_request request;
      request.sequence_length = std::int64_t(config["S"]);
      if (!size.is_null()) request.num_samples = std::int64_t(size);
      request.part = part;
      request.random_seed = static_cast<std::uint32_t>(std::int64_t(config["seed"]));
      request.add_extra_token = flag(config, "extra");
      request.drop_last_partial_validation_sequence = flag(config, "drop");

      const sequence_range range = split.of(part, data.sequence_count());
      EXPECT_EQ(test::numbers(expected["indices"]), (std::vector{range.first, range.last}));
      const auto lengths = data.index().lengths;
      const gpt_plan plan =
          plan_gpt_index(request, range, count_tokens(lengths, range, 0), "corpus");
      EXPECT_EQ(plan.samples, std::int64_t(expected["len"]));
      for (const int threads : {1, 2}) {
        const gpt_index index = build_gpt_index(plan, lengths, "corpus", threads);
        EXPECT_EQ(wide(index.document.numbers()), test::numbers(expected["document_index"]));
        EXPECT_EQ(wide_of(index.sample), test::numbers(expected["sample_index"]));
        EXPECT_EQ(wide_of(index.shuffle), test::numbers(expected["shuffle_index"]));
      }

      const std::string_view text = expected["description"];
      const gpt_description description{"corpus",
                                        request.num_samples,
                                        part,
                                        request.random_seed,
                                        request.sequence_length,
                                        std::string(std::string_view(config["split"])),
                                        read_python_json(tokenizer_of(text))};
      EXPECT_EQ(description.text(), text);
      EXPECT_EQ(description.cache_name(), std::string(std::string_view(expected["md5"])) +
                                              "-GPTDataset-" + std::string(part_name));
    }
  }
  EXPECT_EQ(seen, 12);
}

}  // namespace
}  // namespace millrace::dataset
