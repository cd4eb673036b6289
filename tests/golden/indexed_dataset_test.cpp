// SPDX-License-Identifier: Apache-2.0
//
// Reads files that Megatron wrote. Their contents are listed in golden/megatron/manifest.json.
#include <millrace/dataset/indexed_dataset.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <simdjson.h>

#include <millrace/dataset/detail/verify.hpp>

#include "support/paths.hpp"

namespace millrace::dataset {
namespace {

namespace dom = simdjson::dom;

constexpr open_options full = {.check = check_level::full};

/// The datasets of the manifest. `for_each(f)` calls `f(prefix, entry)` for each dataset.
class manifest {
 public:
  manifest() : text_(test::read_text(test::golden("megatron/manifest.json"))) {}

  template <class F>
  void for_each(F&& f) {
    for (const auto& [name, entry] : dom::object(parser_.parse(text_))) {
      SCOPED_TRACE(std::string(name));
      f(test::golden("megatron") / std::string(name), dom::object(entry));
    }
  }

 private:
  std::string text_;
  dom::parser parser_;
};

/// Compares the numbers `at(0)` to `at(count - 1)` with an array of the manifest.
template <class At>
void expect_array(dom::array expected, std::int64_t count, const At& at) {
  ASSERT_EQ(static_cast<std::int64_t>(expected.size()), count);
  std::int64_t i = 0;
  for (const dom::element value : expected) {
    EXPECT_EQ(at(i), std::int64_t(value)) << "entry " << i;
    ++i;
  }
}

TEST(MegatronsDatasets, HaveTheirIndexReadBack) {
  int seen = 0;
  manifest().for_each([&](const std::filesystem::path& prefix, dom::object entry) {
    ++seen;
    const indexed_dataset data(prefix, full);
    EXPECT_EQ(formats::name(data.type()), std::string_view(entry["dtype"]));
    expect_array(entry["lengths"], data.sequence_count(),
                 [&](std::int64_t i) { return data.sequence_length(i); });
    expect_array(entry["document_indices"], data.document_count() + 1, [&](std::int64_t d) {
      return d == 0 ? data.index().document_index[0] : data.document(d - 1).last;
    });
    dom::array modes;
    EXPECT_EQ(data.is_multimodal(), entry["modes"].get(modes) == simdjson::SUCCESS);
    if (data.is_multimodal()) {
      expect_array(modes, data.sequence_count(), [&](std::int64_t i) { return data.mode(i); });
    }
  });
  EXPECT_GE(seen, 15);
}

TEST(MegatronsDatasets, HaveTheirTokensReadBack) {
  int seen = 0;
  manifest().for_each([&](const std::filesystem::path& prefix, dom::object entry) {
    dom::array documents;
    if (entry["documents"].get(documents) != simdjson::SUCCESS) return;
    ++seen;
    const indexed_dataset data(prefix, full);
    ASSERT_EQ(static_cast<std::int64_t>(documents.size()), data.document_count());
    std::int64_t sequence = 0;
    for (const dom::array document : documents) {
      for (const dom::array written : document) {
        // In a multimodal dataset, the manifest lists each sequence as a pair (tokens, mode).
        const dom::array tokens = data.is_multimodal() ? dom::array(written.at(0)) : written;
        const token_view found = data.sequence(sequence++);
        expect_array(tokens, found.size(), [&](std::int64_t i) { return found[i]; });
      }
    }
    EXPECT_EQ(sequence, data.sequence_count());
  });
  EXPECT_GE(seen, 12);
}

TEST(MegatronsDatasets, AreTheirPartsOneBehindAnotherWhenMerged) {
  int seen = 0;
  manifest().for_each([&](const std::filesystem::path& prefix, dom::object entry) {
    dom::array parts;
    if (entry["parts"].get(parts) != simdjson::SUCCESS) return;
    ++seen;
    const indexed_dataset whole(prefix, full);
    std::int64_t first = 0;
    for (const std::string_view name : parts) {
      const indexed_dataset part(test::golden("megatron") / std::string(name), full);
      ASSERT_EQ(part.type(), whole.type());
      EXPECT_TRUE(whole.stream().subview(first, part.token_count()) == part.stream());
      first += part.token_count();
    }
    EXPECT_EQ(first, whole.token_count());
  });
  EXPECT_GE(seen, 3);
}

TEST(MegatronsDatasets, HoldIdsOfTheirVocabulary) {
  int seen = 0;
  manifest().for_each([&](const std::filesystem::path& prefix, dom::object entry) {
    std::int64_t vocab_size = 0;
    if (entry["vocab_size"].get(vocab_size) != simdjson::SUCCESS) return;
    ++seen;
    EXPECT_NO_THROW(verify_tokens(indexed_dataset(prefix, full), vocab_size));
  });
  EXPECT_GE(seen, 3);
}

}  // namespace
}  // namespace millrace::dataset
