// SPDX-License-Identifier: Apache-2.0
//
// Megatron's mock documents and its samples of sentences: `mock_gpt` and `build_mapping` of
// megatron_golden.json.
#include <millrace/dataset/megatron/mock_documents.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/dataset/megatron/sentence_mapping.hpp>
#include <millrace/formats/md5.hpp>

#include "golden/dataset/megatron_golden.hpp"

namespace millrace::dataset {
namespace {

namespace dom = simdjson::dom;

TEST(MegatronsMockDocuments, HaveTheirLengths) {
  if (test::shared_folder().empty()) GTEST_SKIP() << test::no_shared_folder;
  const test::megatron_golden golden;
  const dom::element expected = golden["mock_gpt"];
  EXPECT_EQ(std::string_view(expected["rule"]),
            "default_rng(0).integers(1,4096," + std::to_string(mock_document_count) + ",int32)");
  const std::vector<std::int32_t> lengths = mock_document_lengths();
  ASSERT_EQ(lengths.size(), mock_document_count);
  const auto first = test::numbers(expected["first10"]);
  const auto last = test::numbers(expected["last5"]);
  EXPECT_EQ((std::vector<std::int64_t>(lengths.begin(), lengths.begin() + 10)), first);
  EXPECT_EQ((std::vector<std::int64_t>(lengths.end() - 5, lengths.end())), last);
  EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}),
            std::int64_t{expected["sum"]});
  EXPECT_EQ(formats::md5().update(std::as_bytes(std::span(lengths))).hex(),
            std::string_view(expected["md5"]));
}

TEST(MegatronsSentences, AreMappedToItsSamples) {
  if (test::shared_folder().empty()) GTEST_SKIP() << test::no_shared_folder;
  const test::megatron_golden golden;
  const dom::element given = golden["build_mapping"];
  std::vector<std::int32_t> lengths;
  for (const std::int64_t length : test::numbers(given["sizes"])) {
    lengths.push_back(static_cast<std::int32_t>(length));
  }
  const auto int32 = [&](const char* key) {
    return static_cast<std::int32_t>(std::int64_t{given[key]});
  };
  const std::vector<sentence_run> runs =
      map_sentences(test::numbers(given["docs"]), lengths,
                    {.epochs = int32("num_epochs"),
                     .most_samples = std::int64_t{given["max_num_samples"]},
                     .most_tokens = int32("max_seq_length"),
                     .short_probability = double{given["short_seq_prob"]},
                     .seed = static_cast<std::uint32_t>(int32("seed")),
                     .least_sentences = int32("min_num_sent")});
  std::vector<std::int64_t> flat;
  for (const sentence_run& run : runs) {
    flat.insert(flat.end(), {run.first, run.last, std::int64_t{run.tokens}});
  }
  EXPECT_EQ(flat, test::numbers(given["out"]));
  EXPECT_EQ(std::string_view(given["dtype"]), "uint32");  // wider from 2^32 sentences on
}

}  // namespace
}  // namespace millrace::dataset
