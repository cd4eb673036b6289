// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/src.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/paths.hpp"
#include "unit/formats/codec_quartet.hpp"
#include "unit/formats/src_files.hpp"

namespace millrace::formats {
namespace {

using test::bytes;
using test::expect_refused;
using test::golden_src;
using test::with;

/// Parses the file and reads the places of all documents, as a merge does.
std::vector<source_place> read_all(std::span<const std::byte> file) {
  const src_view view = parse_src(file);
  std::vector<source_place> places;
  src_cursor cursor(view);
  for (auto group = cursor.next(); !group.empty(); group = cursor.next()) {
    places.insert(places.end(), group.begin(), group.end());
  }
  return places;
}

// The golden files are read correctly. golden/sidecars/generate.py wrote the files and their
// expected contents from the specification.
TEST(ParseSrc, ReadsTheGoldenFiles) {
  for (const char* name : test::src_cases) {
    SCOPED_TRACE(name);
    const bytes file = golden_src(name);
    const test::src_answer answer = test::read_src_answer(name);
    const src_view view = parse_src(file);
    ASSERT_EQ(view.document_count(), answer.places.size());
    ASSERT_EQ(view.input_count(), answer.inputs.size());
    for (std::size_t i = 0; i < answer.inputs.size(); ++i) {
      EXPECT_EQ(view.input_name(i), answer.inputs[i].name);
      EXPECT_EQ(view.input_unit(i), answer.inputs[i].unit);
    }
    EXPECT_EQ(read_all(file), answer.places);
    for (std::size_t i = 0; i < answer.places.size(); ++i) {
      ASSERT_EQ(view.at(i), answer.places[i]) << "document " << i;
    }
  }
}

TEST(ParseSrc, ReadsTheExampleOfThePage) {
  const bytes file = golden_src("preprocess_lines");
  const src_view view = parse_src(file);
  const std::string text = test::read_text(test::golden("megatron/preprocess_lines.jsonl"));
  ASSERT_EQ(view.document_count(), 18U);
  EXPECT_EQ(view.input_name(0), "preprocess_lines.jsonl");
  const auto line = [&](std::uint64_t i) {
    const source_place place = view.at(i);
    EXPECT_EQ(place.line, static_cast<std::int64_t>(i) + 1);
    return text.substr(place.begin, place.end - place.begin);
  };
  EXPECT_EQ(line(0), R"({"text": "ends with LF"})");
  EXPECT_EQ(line(1), R"({"text": "ends with CR LF"})");
  EXPECT_EQ(line(2), R"({"text": "ends with a lone CR"})");
  EXPECT_EQ(line(3), R"({"text": ""})");
  EXPECT_EQ(line(17), R"({"text": "no newline at the end of the file"})");
}

TEST(ParseSrc, RefusesEveryTruncation) {
  for (const char* name : test::src_cases) {
    SCOPED_TRACE(name);
    test::expect_every_truncation_refused(parse_src, golden_src(name));
  }
}

TEST(ParseSrc, RefusesExtraBytes) {
  for (const char* name : {"none", "files"}) {
    bytes file = golden_src(name);
    for (int extra = 1; extra < 70; ++extra) {
      file.push_back(std::byte{0});
      expect_refused(parse_src, file, 40, "bytes of names, but the rest of the file has");
    }
  }
}

// Bytes after the names are refused. The file is 3 bytes longer, and the header counts 3 more bytes
// of names, but no name uses these bytes.
TEST(ParseSrc, RefusesBytesBehindTheNames) {
  bytes file = golden_src("preprocess_lines");
  file.resize(file.size() + 3);
  file = with(file, 40, std::uint64_t{4 + 22 + 3});
  expect_refused(parse_src, file, 131, "3 bytes follow the names");
}

TEST(ParseSrc, RefusesABadHeader) {
  const bytes file = golden_src("typical");
  for (std::size_t i = 0; i < 8; ++i) {
    expect_refused(parse_src, with(file, i, file[i] ^ std::byte{0x20}), i, "not a .src file");
  }
  for (const std::uint32_t size : {0U, 63U, 128U, ~0U}) {
    expect_refused(parse_src, with(file, 12, size), 12,
                   "expected groups of 64 documents, found " + std::to_string(size));
  }
}

TEST(ParseSrc, RefusesOtherVersions) {
  for (const std::uint32_t version : {0U, 3U, 0x01000000U, ~0U}) {
    expect_refused(parse_src, with(golden_src("typical"), 8, version), 8,
                   "expected .src version 1 or 2, found " + std::to_string(version));
  }
}

TEST(ParseSrc, RefusesCountsThatWouldWrap) {
  const bytes file = golden_src("typical");
  for (const std::uint64_t count : {1UL << 58, 1UL << 62, 1UL << 63, ~0UL - 62, ~0UL}) {
    expect_refused(parse_src, with(file, 16, count), 16, "the header counts");
    expect_refused(parse_src, with(file, 24, count), 24, "the header counts");
    expect_refused(parse_src, with(file, 32, count), 32, "the header counts");
    expect_refused(parse_src, with(file, 40, count), 40, "the header counts");
  }
  // With this value, the names would begin before the directory ends.
  expect_refused(parse_src, with(file, 24, std::uint64_t{file.size() - 48}), 16,
                 "the header counts 300 documents");
  expect_refused(parse_src, with(file, 24, std::uint64_t{299}), 24, "at least one for each of 300");
}

// An altered byte may change the place of a document. But the place must never refer to an input
// that does not exist, and no other failure may occur.
TEST(ParseSrc, SurvivesEveryAlteredByte) {
  const auto check = [](std::span<const std::byte> file) {
    const src_view view = parse_src(file);
    for (const source_place& place : read_all(file)) {
      EXPECT_LT(place.input, view.input_count());
      EXPECT_GE(place.line, 1);
      EXPECT_LE(place.begin, place.end);
      EXPECT_EQ(place.end >> 63, 0U);
    }
  };
  for (const char* name : {"preprocess_lines", "files", "extremes"}) {
    SCOPED_TRACE(name);
    EXPECT_GT(test::survive_every_alteration(check, golden_src(name)), 0U);
  }
}

// Payloads for a file with two documents. The record of the first document is in line 3. It has 5
// bytes and begins at byte 10.
class SrcPayload : public testing::Test {
 protected:
  static bytes file_of(std::vector<int> payload, src_group group = {0, 3, 10, 0}) {
    byte_writer writer;
    writer.put(std::as_bytes(std::span(src_magic)));
    const src_header header{src_version, 64, 2, payload.size(), 1, 5};
    fields(writer, header);
    for (const int value : payload) writer("", static_cast<std::uint8_t>(value));
    fields(writer, std::as_const(group));
    writer("", std::uint32_t{1});
    writer("", 'a');
    return writer.take();
  }
  static void refused(std::vector<int> payload, std::uint64_t offset, const char* text,
                      src_group group = {0, 3, 10, 0}) {
    expect_refused(read_all, file_of(std::move(payload), group), offset, text);
  }
};

TEST_F(SrcPayload, IsReadByThePage) {
  const source_place first{0, 3, 10, 15};
  const auto second = [&](std::vector<int> payload) {
    const auto places = read_all(file_of(std::move(payload)));
    EXPECT_EQ(places.at(0), first);
    return places.at(1);
  };
  EXPECT_EQ(second({10, 14}), (source_place{0, 4, 16, 23}));
  EXPECT_EQ(second({10, 15, 2, 2}), (source_place{0, 5, 16, 23}));
  EXPECT_EQ(second({10, 15, 4, 1}), (source_place{0, 4, 15, 22}));
  EXPECT_EQ(second({10, 15, 6, 1, 7}), (source_place{0, 3, 12, 19}));
}

TEST_F(SrcPayload, IsRefusedWhereItContradictsThePage) {
  refused({11, 14}, 48, "the first document of a group refers to a previous document");
  refused({10, 14, 0}, 50, "bytes follow the last document");
  refused({10, 15, 0}, 50, "expected 1 to 7 for the flags");
  refused({10, 15, 8, 2}, 50, "expected 1 to 7 for the flags");
  refused({10, 15, 2, 0}, 51, "is stored, but is as expected");
  refused({10, 15, 1, 2}, 50, "from an input beyond the 1 that are named");
  refused({10, 15, 1, 1}, 50, "from an input beyond the 1 that are named");
  refused({10, 15, 2, 7}, 49, "a document is at line 0 of its input");
  refused({10, 15, 4, 33}, 49,
          "a document of 7 bytes begins at byte 18446744073709551615, so it ends");
  refused({10, 15, 4}, 51, "the group ends inside the first byte of a document");
  refused({10, 0x80}, 49, "the group ends inside the length of a document");
}

TEST_F(SrcPayload, IsRefusedWithABadDirectory) {
  refused({10, 14}, 50, "a group begins in input 1, expected a number below 1", {1, 3, 10, 0});
  refused({10, 14}, 54, "a group begins at line 0 of its input", {0, 0, 10, 0});
  refused({10, 14}, 48, "so it ends after 2^63 - 1", {0, 3, ~std::uint64_t{0} >> 1, 0});
  refused({10, 14}, 48, "so it ends after 2^63 - 1", {0, 3, ~std::uint64_t{0}, 0});
  refused({10, 14}, 70, "a group begins at byte 1 of a payload of 2", {0, 3, 10, 1});
  refused({10, 14}, 70, "a group begins at byte 3 of a payload of 2", {0, 3, 10, 3});
}

TEST(ParseSrc, RefusesGroupsThatFallBack) {
  const bytes file = golden_src("typical");
  // Offset of the third group's directory entry. The file ends with the name "a.jsonl".
  const std::size_t entry = file.size() - 11 - std::size_t{3} * 28;
  const auto group = [](std::span<const std::byte> bytes_of) {
    std::array<source_place, 64> places;
    return parse_src(bytes_of).decode_group(1, places);
  };
  EXPECT_EQ(group(file), 64U);
  expect_refused(group, with(file, entry + 20, std::uint64_t{0}), entry + 20,
                 "of the payload, before the previous group");
}

TEST(ParseSrc, RefusesBadUnits) {
  const auto file = golden_src("rows");
  // The first of the inputs, and the only one with rows, is a.parquet.
  const std::string text(reinterpret_cast<const char*>(file.data()), file.size());
  const std::size_t unit = text.rfind("a.parquet") - 5;
  expect_refused(parse_src, with(file, unit, std::uint8_t{2}), unit,
                 "the unit of an input is 2, expected 0 (bytes) or 1 (rows)");
  expect_refused(parse_src, with(file, unit, std::uint8_t{0}), 8,
                 "no input is counted in rows, expected .src version 1, found 2");
}

}  // namespace
}  // namespace millrace::formats
