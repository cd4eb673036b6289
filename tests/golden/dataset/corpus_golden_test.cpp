// SPDX-License-Identifier: Apache-2.0
//
// Compares datasets with files that Megatron's builder wrote. The entries `idx_*` of
// megatron_golden.json hold these files in hexadecimal. Also tests that `write_corpora` writes the
// corpus that the entry `corpus` describes. Other golden tests use this corpus.
#include <millrace/dataset/indexed_dataset.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/formats/mmidx.hpp>

#include "golden/dataset/megatron_golden.hpp"

namespace millrace::dataset {
namespace {

namespace dom = simdjson::dom;

/// The input of Megatron's builder. The golden file lists each document as [tokens, lengths of
/// sequences].
struct contents {
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> ends = {0};
  std::vector<std::int64_t> tokens;
  std::vector<std::int8_t> modes;
};

contents contents_of(dom::element each) {
  contents all;
  for (const dom::element document : dom::array(each["docs"])) {
    for (const std::int64_t token : test::numbers(document.at(0))) all.tokens.push_back(token);
    for (const std::int64_t length : test::numbers(document.at(1))) {
      all.lengths.push_back(static_cast<std::int32_t>(length));
    }
    all.ends.push_back(static_cast<std::int64_t>(all.lengths.size()));
  }
  dom::element modes;
  if (each["modes"].get(modes) == simdjson::SUCCESS) {
    for (const std::int64_t mode : test::numbers(modes)) {
      all.modes.push_back(static_cast<std::int8_t>(mode));
    }
  }
  return all;
}

std::vector<std::int64_t> tokens_of(const indexed_dataset& data) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(data.token_count()));
  data.stream().copy_to(std::span(tokens));
  return tokens;
}

TEST(MegatronsFiles, HoldWhatItsBuilderWasGiven) {
  if (test::shared_folder().empty()) GTEST_SKIP() << test::no_shared_folder;
  const test::megatron_golden golden;
  const test::temp_folder folder;
  for (const char* name : {"idx_uint16_3docs", "idx_int32", "idx_mm", "idx_empty"}) {
    SCOPED_TRACE(name);
    const dom::element each = golden[name];
    golden.write_files(name, folder / name);
    const indexed_dataset data(folder / name, {.check = check_level::full});
    const contents given = contents_of(each);
    EXPECT_EQ(data.index().lengths.to_vector(), given.lengths);
    EXPECT_EQ(data.index().document_index.to_vector(), given.ends);
    EXPECT_EQ(data.index().modes.to_vector(), given.modes);
    EXPECT_EQ(tokens_of(data), given.tokens);
    EXPECT_EQ(formats::encode_mmidx(data.type(), given.lengths, given.ends, given.modes),
              test::read_bytes(test::suffixed(folder / name, ".idx")));
    // megatron-core 0.16.1 wrote the same files into tests/golden/megatron.
    for (const char* suffix : {".idx", ".bin"}) {
      EXPECT_EQ(test::read_bytes(test::suffixed(test::golden("megatron") / name, suffix)),
                test::read_bytes(test::suffixed(folder / name, suffix)));
    }
  }
}

TEST(MegatronsCorpus, IsTheOneThatTestsWrite) {
  if (test::shared_folder().empty()) GTEST_SKIP() << test::no_shared_folder;
  const test::megatron_golden golden;
  const test::temp_folder folder;
  test::megatron_golden::write_corpora(folder.path());
  const indexed_dataset data(folder / "corpus", {.check = check_level::full});
  const dom::element corpus = golden["corpus"];
  EXPECT_EQ(data.document_count(), std::int64_t{corpus["D"]});
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < data.sequence_count(); ++i) {
    lengths.push_back(data.sequence_length(i));
  }
  EXPECT_EQ(lengths, test::numbers(corpus["sizes"]));
  // write_corpora must follow this rule.
  EXPECT_EQ(std::string_view(corpus["rule"]),
            "doc i (0-based): tokens (i*37+k)%999 for k in 0..L-2, then 999; L=2+(i*7)%23; vocab "
            "1000, uint16");
}

}  // namespace
}  // namespace millrace::dataset
