// SPDX-License-Identifier: Apache-2.0
#include "run/pipeline.hpp"

#include <gtest/gtest.h>

#include <simdjson.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/formats/detail/sha256.hpp>
#include <millrace/formats/mmidx.hpp>

#include "support/paths.hpp"
#include "support/preprocess_files.hpp"
#include "support/tokenizers.hpp"

namespace millrace::preprocess {
namespace {

std::unique_ptr<tokenizer::tokenizer> tokenizer_named(std::string_view name) {
  if (name == "byte") return test::byte_tokenizer();
  if (name == "null:1000") return test::null_tokenizer(1000);
  if (name == "tiny_bpe") return test::tiny_bpe_tokenizer();
  throw std::runtime_error("no tokenizer is named " + std::string(name));
}

// Runs `check(options, prefix)` with several numbers of workers and several block sizes. The output
// must not depend on either.
template <class Check>
void for_each_way(bool append_eod, const Check& check) {
  for (const int workers : {1, 2, 7}) {
    for (const std::size_t block_bytes : {std::size_t{64}, std::size_t{512} << 10}) {
      SCOPED_TRACE(testing::Message() << workers << " workers, blocks of " << block_bytes);
      const test::temp_folder folder;
      run_options options;
      options.output_prefix = folder / "out";
      options.append_eod = append_eod;
      options.workers = workers;
      options.limits.block_bytes = block_bytes;
      check(options, folder / "out_text_document");
    }
  }
}

// Compares the output with the files that Megatron's builder wrote for the same lines and the same
// tokenizer.
TEST(PreprocessGolden, GivesMegatronsBytes) {
  simdjson::dom::parser parser;
  const simdjson::dom::object manifest =
      parser.load(test::golden("megatron/manifest.json").string()).get_object();
  int runs = 0;
  for (const auto [name, how] : manifest) {
    std::string_view input;
    if (how["input"].get(input) != simdjson::SUCCESS) continue;
    SCOPED_TRACE(std::string(name));
    ++runs;
    const auto tokenizer = tokenizer_named(how["tokenizer"].get_string());
    EXPECT_EQ(tokenizer->vocab_size(), std::int64_t{how["vocab_size"]});
    const std::string path = (test::golden("megatron") / input).string();
    const auto wanted = test::read_dataset(test::golden("megatron") / name);
    for_each_way(bool{how["append_eod"]}, [&](const auto& options, const auto& prefix) {
      const run_summary summary = test::preprocess_files(*tokenizer, {path}, options);
      const auto found = test::read_dataset(prefix);
      EXPECT_TRUE(found.bin == wanted.bin);
      EXPECT_TRUE(found.idx == wanted.idx);
      EXPECT_EQ(summary.counts.bad_record_total(), 0);
    });
  }
  EXPECT_EQ(runs, 3);
}

// Compares checksums of the output for the corpus of the quickstart, with two tokenizers.
TEST(PreprocessGolden, GivesMegatronsSumsForTheSample) {
  simdjson::dom::parser parser;
  const simdjson::dom::object sums =
      parser.load(test::golden("megatron/sample_sha256.json").string()).get_object();
  const std::string corpus = (test::source_folder() / "scripts/sample/corpus.jsonl").string();
  int runs = 0;
  for (const auto [name, sum] : sums) {
    const simdjson::dom::element wanted = sum;  // a lambda cannot capture a structured binding
    SCOPED_TRACE(std::string(name));
    ++runs;
    const bool append_eod = name.ends_with("_eod");
    const auto tokenizer =
        tokenizer_named(append_eod ? name.substr(0, name.size() - 4) : std::string_view(name));
    for_each_way(append_eod, [&](const auto& options, const auto& prefix) {
      const run_summary summary = test::preprocess_files(*tokenizer, {corpus}, options);
      const auto found = test::read_dataset(prefix);
      EXPECT_EQ(formats::sha256_hex(found.bin), std::string_view(wanted["bin_sha256"]));
      EXPECT_EQ(formats::sha256_hex(found.idx), std::string_view(wanted["idx_sha256"]));
      EXPECT_EQ(summary.counts.documents, std::int64_t{wanted["documents"]});
      EXPECT_EQ(summary.outputs.at(0).sequences, std::int64_t{wanted["sequences"]});
      EXPECT_EQ(summary.outputs.at(0).documents, std::int64_t{wanted["documents"]});
      EXPECT_EQ(summary.tokens(), std::int64_t{wanted["tokens"]});
    });
  }
  EXPECT_EQ(runs, 4);
}

// With `--partitions 2`, Megatron's program writes five lines in the order 0, 2, 4, 1, 3. One of
// the lines holds three texts.
TEST(PreprocessGolden, GivesMegatronsOrderOfPartitions) {
  const test::temp_folder folder;
  const std::string path = (folder / "in.jsonl").string();
  test::write_text(path,
                   "{\"text\": \"1 2 3\"}\n{\"text\": [\"4 5\", \"6\", \"8 9 10\"]}\n"
                   "{\"text\": \"11\"}\n{\"text\": \"12 13 14 15\"}\n{\"text\": \"16 17\"}\n");
  const auto tokenizer = test::null_tokenizer(1000);
  const std::vector<std::uint16_t> ids = {1, 2, 3, 999, 11,  999, 16, 17, 999, 4,  5,
                                          6, 8, 9, 10,  999, 12,  13, 14, 15,  999};
  const std::vector<std::int32_t> lengths = {4, 2, 3, 2, 1, 4, 5};
  const std::vector<std::int64_t> documents = {0, 1, 2, 3, 6, 7};
  const auto idx = formats::encode_mmidx(formats::dtype::uint16, lengths, documents);
  for_each_way(true, [&](run_options options, const auto& prefix) {
    options.partitions = 2;
    (void)test::preprocess_files(*tokenizer, {path}, options);
    const auto found = test::read_dataset(prefix);
    EXPECT_TRUE(found.bin == std::string(reinterpret_cast<const char*>(ids.data()), 42));
    EXPECT_TRUE(found.idx == std::string(reinterpret_cast<const char*>(idx.data()), idx.size()));
  });
}

}  // namespace
}  // namespace millrace::preprocess
