// SPDX-License-Identifier: Apache-2.0
//
// Tests, with whole datasets, that the loader serves the tokens of the `.bin`.
#include <millrace/loader/batch_loader.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "support/paths.hpp"
#include "support/preprocess_files.hpp"

namespace millrace::loader {
namespace {

using tokens = std::vector<std::int64_t>;

/// Reads the ids of the `.bin` without using the library.
template <class T>
tokens read_bin(std::filesystem::path prefix) {
  const std::vector<std::byte> bytes = test::read_bytes(prefix += ".bin");
  std::vector<T> stored(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(stored.data(), bytes.data(), bytes.size());
  return {stored.begin(), stored.end()};
}

/// Returns all tokens that the ranks serve, in the order of samples. Checks that the labels are the
/// tokens shifted by one position.
tokens stream(const dataset::indexed_dataset& data, loader_options options, const tokens& bin) {
  tokens all;
  std::vector<tokens> rows;
  for (options.rank = 0; options.rank < options.world_size; ++options.rank) {
    batch_loader loader(data, options);
    while (const auto batch = loader.next()) {
      const std::int64_t last = batch->first_sample() + options.batch_size;
      rows.resize(std::max(rows.size(), static_cast<std::size_t>(last)));
      for (std::int64_t row = 0; row < options.batch_size; ++row) {
        const auto at = static_cast<std::size_t>(row * options.seq_len);
        const auto length = static_cast<std::size_t>(options.seq_len);
        const auto sample = static_cast<std::size_t>(batch->first_sample() + row);
        const auto ids = batch->tokens().subspan(at, length);
        rows[sample].assign(ids.begin(), ids.end());
        const auto labels = batch->labels().subspan(at, length);
        EXPECT_TRUE(std::equal(labels.begin(), labels.end(),
                               bin.begin() + static_cast<std::ptrdiff_t>(sample * length + 1)));
      }
    }
  }
  for (const tokens& row : rows) all.insert(all.end(), row.begin(), row.end());
  return all;
}

void expect_bin(const std::filesystem::path& prefix, const tokens& bin,
                const loader_options& options) {
  const dataset::indexed_dataset data(prefix);
  const auto windows = (static_cast<std::int64_t>(bin.size()) - 1) / options.seq_len;
  const std::int64_t step = options.batch_size * options.world_size;
  const std::int64_t served = windows / step * step * options.seq_len;
  EXPECT_GT(served, 0);
  EXPECT_EQ(stream(data, options, bin), tokens(bin.begin(), bin.begin() + served));
}

template <class T>
class LoaderGolden : public testing::Test {};
using Integers = testing::Types<std::uint8_t, std::int8_t, std::int16_t, std::uint16_t,
                                std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(LoaderGolden, Integers);

// Megatron wrote these files. They contain the smallest and the largest value of each type.
TYPED_TEST(LoaderGolden, StreamsWhatMegatronWrote) {
  const auto name = std::string(formats::name(formats::dtype_of<TypeParam>()));
  const auto prefix = test::golden("megatron/all_dtypes") / name;
  const tokens bin = read_bin<TypeParam>(prefix);
  const auto most = static_cast<std::int64_t>(bin.size()) - 1;
  const auto fits = [](std::int64_t id) { return id == static_cast<std::int32_t>(id); };
  if (!std::ranges::all_of(bin, fits)) {
    // Batches hold 32-bit ids. The loader must refuse larger ids instead of truncating them.
    const dataset::indexed_dataset data(prefix);
    batch_loader loader(data, {.seq_len = most});
    EXPECT_THROW((void)loader.next(), format_error);
    return;
  }
  for (std::int64_t seq_len = 1; seq_len <= most; ++seq_len) {
    expect_bin(prefix, bin, {.seq_len = seq_len});
  }
  expect_bin(prefix, bin, {.batch_size = 2, .seq_len = 1, .world_size = 2});
}

// Tests the whole pipeline: from the sample corpus, whose bytes become tokens, to the batches.
TEST(LoaderOfTheSample, StreamsWhatPreprocessDataWrote) {
  const test::temp_folder folder;
  const auto tokenizer = tokenizer::make_tokenizer({});
  test::preprocess_files(*tokenizer,
                         {(test::source_folder() / "scripts/sample/corpus.jsonl").string()},
                         {.inputs = {}, .output_prefix = folder / "sample", .append_eod = true});
  const auto prefix = folder / "sample_text_document";
  const tokens bin = read_bin<std::uint16_t>(prefix);
  ASSERT_EQ(bin.size(), 73267);  // the count in golden/megatron/sample_sha256.json

  expect_bin(prefix, bin, {.batch_size = 4, .seq_len = 256});
  expect_bin(prefix, bin, {.batch_size = 8, .seq_len = 64, .look_ahead = 5});
  expect_bin(prefix, bin, {.batch_size = 2, .seq_len = 1024, .world_size = 7});
  expect_bin(prefix, bin, {.batch_size = 1, .seq_len = 73266});
}

}  // namespace
}  // namespace millrace::loader
