// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/dataset_writer.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/document_sources.hpp>
#include <millrace/dataset/detail/verify.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/mmidx.hpp>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class DatasetWriter : public testing::Test {
 protected:
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& each : std::filesystem::directory_iterator(folder_.path())) {
      names.push_back(each.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }

  /// Three documents: one of two sequences, one without any, one of an empty and a long sequence,
  /// so that the .bin has more than one block of checksums.
  std::string write(const writer_options& options) {
    std::vector<std::uint16_t> tokens(700'000);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::uint16_t>(i * 7);
    const std::vector<std::int32_t> lengths = {3, 2, 0, 699'995};
    const std::vector<std::int8_t> modes = {0, 1, 2, -1};
    const std::vector<std::int64_t> ends = {2, 2, 4};
    const auto some = [&](const auto& of, std::size_t from, std::size_t count) {
      return std::span(of).subspan(options.modes ? from : 0, options.modes ? count : 0);
    };
    dataset_writer writer(folder_ / "made", options);
    writer.append_sequences(std::span(lengths).first(1), some(modes, 0, 1));
    writer.append_tokens(std::as_bytes(std::span(tokens).first(100'001)));
    writer.append_document_ends(std::span(ends).first(2));
    writer.append_tokens(std::as_bytes(std::span(tokens).subspan(100'001)));
    writer.append_sequences(std::span(lengths).subspan(1), some(modes, 1, 3));
    writer.append_document_ends(std::span(ends).subspan(2));
    if (options.places) {
      for (std::int64_t line = 1; line <= 3; ++line) {
        const formats::source_place place{.input = 0, .line = line, .begin = 0, .end = 9};
        writer.append_places(std::span(&place, 1));
      }
    }
    if (!options.overwrite) {
      EXPECT_THAT(files(), testing::Not(testing::Contains("made.idx")));
    }
    const std::vector<formats::src_input> inputs(options.places ? 1 : 0, {"in.jsonl"});
    std::string root = writer.finish(inputs);
    writer.publish("");
    test::write_dataset<std::uint16_t>(
        folder_ / "wanted",
        {{{tokens.begin(), tokens.begin() + 3}, {tokens.begin() + 3, tokens.begin() + 5}},
         {},
         {{}, {tokens.begin() + 5, tokens.end()}}},
        options.modes ? modes : std::vector<std::int8_t>());
    return root;
  }

  test::temp_folder folder_;
};

TEST_F(DatasetWriter, WritesWhatTheCodecEncodes) {
  for (const bool has_more : {false, true}) {
    SCOPED_TRACE(has_more);
    const std::string root = write({.modes = has_more, .places = has_more, .overwrite = has_more});
    for (const char* suffix : {".bin", ".idx"}) {
      EXPECT_EQ(test::read_bytes(test::suffixed(folder_ / "made", suffix)),
                test::read_bytes(test::suffixed(folder_ / "wanted", suffix)))
          << suffix;
    }
    EXPECT_EQ(verify_sums(folder_ / "made", {}).value().root, root);
    const indexed_dataset data(folder_ / "made");
    const auto places = document_sources::find(data);
    ASSERT_EQ(places.has_value(), has_more);
    if (places) {
      EXPECT_EQ(places->at(2).line, 3);
      EXPECT_EQ(places->input_name(0), "in.jsonl");
    }
  }
  EXPECT_THAT(files(), testing::ElementsAre("made.bin", "made.idx", "made.src", "made.sum",
                                            "wanted.bin", "wanted.idx"));
}

TEST_F(DatasetWriter, ReplacesOnlyOnRequestAndRemovesOldSidecars) {
  test::write_dataset<std::uint16_t>(folder_ / "made", {{{1, 2, 3}}});
  test::write_text(folder_ / "made.meta", "old");
  const auto before = test::read_bytes(folder_ / "made.idx");
  try {
    write({});
    FAIL() << "replaced";
  } catch (const config_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("made.bin exists; pass --overwrite to replace it"));
  }
  EXPECT_EQ(test::read_bytes(folder_ / "made.idx"), before);
  EXPECT_EQ(files().size(), 3U);
  write({.overwrite = true});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "made.meta"));
}

TEST_F(DatasetWriter, LeavesNothingWithoutPublish) {
  {
    dataset_writer writer(folder_ / "made", {.places = true});
    const std::int32_t length = 0;
    writer.append_sequences(std::span(&length, 1));
  }
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(DatasetWriter, RefusesAnIndexThatDoesNotFitTheTokens) {
  const std::uint16_t tokens[] = {1, 2, 3};
  const std::int32_t short_by_one = 2;
  const std::int32_t right = 3;
  const std::int64_t end = 1;
  const auto refusal = [&](std::int32_t length, bool has_document) -> std::string {
    dataset_writer writer(folder_ / "made", {});
    writer.append_tokens(std::as_bytes(std::span(tokens)));
    writer.append_sequences(std::span(&length, 1));
    if (has_document) writer.append_document_ends(std::span(&end, 1));
    try {
      (void)writer.finish();
    } catch (const error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(refusal(short_by_one, true), HasSubstr("2 tokens, the .bin has 3"));
  EXPECT_THAT(refusal(right, false), HasSubstr("after 0 of 1 sequences"));
  EXPECT_EQ(refusal(right, true), "");
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(DatasetWriter, NamesWhatIsWrongWithTheOutput) {
  EXPECT_THROW(dataset_writer(folder_ / "no/such/folder", {}), config_error);
  EXPECT_THROW(dataset_writer(folder_ / "", {}), config_error);
  try {
    dataset_writer writer(folder_ / "made", {.bytes = std::uint64_t{1} << 62});
    FAIL() << "that much space is free";
  } catch (const config_error&) {
    throw;
  } catch (const error& e) {
    EXPECT_THAT(e.what(), HasSubstr("not enough disk space: 4611686018427387904 bytes"));
  }
  EXPECT_THAT(files(), IsEmpty());
}

}  // namespace
}  // namespace millrace::dataset
