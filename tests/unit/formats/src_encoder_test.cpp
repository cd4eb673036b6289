// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/detail/src_encoder.hpp>

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "support/encode_sidecars.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/formats/src_files.hpp"

namespace millrace::formats {
namespace {

// An encoder resumes from a saved state. Several processes run one after another. Each writes a few
// documents, saves its state and is killed.
TEST(SrcEncoder, GoesOnFromWhatWasSaved) {
  std::mt19937_64 random(test::seed(1));
  for (const char* name : test::src_cases) {
    SCOPED_TRACE(name);
    const auto [inputs, places] = test::read_src_answer(name);
    std::vector<std::byte> payload;
    std::vector<std::byte> directory;
    src_encoder::state saved;
    for (std::size_t i = 0; i < places.size();) {
      src_encoder encoder(saved);
      for (std::size_t n = random() % 70; n != 0 && i < places.size(); --n, ++i) {
        encoder.append(places[i], payload, directory);
      }
      saved = encoder.save();
      EXPECT_EQ(saved.documents, i);
      EXPECT_EQ(saved.payload_bytes, payload.size());
      EXPECT_EQ(saved.directory_bytes(), directory.size());
    }
    const auto inputs_part = encode_src_inputs(inputs);
    auto file = encode_src_header(saved, inputs, inputs_part.size());
    EXPECT_EQ(file.size(), src_header_bytes);
    file.insert(file.end(), payload.begin(), payload.end());
    file.insert(file.end(), directory.begin(), directory.end());
    file.insert(file.end(), inputs_part.begin(), inputs_part.end());
    EXPECT_EQ(file, test::golden_src(name));
  }
}

// The encoder produces the golden files, which another program wrote from the specification.
TEST(EncodeSrc, MakesTheGoldenFiles) {
  for (const char* name : test::src_cases) {
    const auto [inputs, places] = test::read_src_answer(name);
    EXPECT_EQ(test::encode_src(places, inputs), test::golden_src(name)) << name;
  }
}

// The .src of a dataset is split into two parts. If both parts are read and encoded again, with
// renumbered inputs, the result is the original file.
TEST(EncodeSrc, MakesOneOfPartsThatIsThatOfOneRun) {
  const auto [inputs, places] = test::read_src_answer("files");
  for (const std::size_t cut : {1UL, 40UL, 64UL, 75UL, 159UL}) {
    src_encoder encoder;
    std::vector<std::byte> payload;
    std::vector<std::byte> directory;
    for (const auto part : {std::span(places).first(cut), std::span(places).subspan(cut)}) {
      const auto file = test::encode_src(part, inputs);
      const src_view view = parse_src(file);
      src_cursor cursor(view);
      for (auto group = cursor.next(); !group.empty(); group = cursor.next()) {
        for (const source_place& place : group) encoder.append(place, payload, directory);
      }
    }
    const auto whole = test::golden_src("files");
    EXPECT_TRUE(
        std::ranges::equal(payload, std::span(whole).subspan(src_header_bytes, payload.size())));
    EXPECT_TRUE(std::ranges::equal(
        directory, std::span(whole).subspan(src_header_bytes + payload.size(), directory.size())));
  }
}

TEST(EncodeSrc, TakesFewBytesADocument) {
  std::mt19937_64 random(test::seed(1));
  std::vector<source_place> places;
  source_place place{0, 1, 0, 0};
  for (int i = 0; i < 64000; ++i) {
    place.end = place.begin + 64 + random() % 8000;
    places.push_back(place);
    ++place.line;
    place.begin = place.end + 2;  // lines end in \r\n
  }
  const double size =
      static_cast<double>(test::encode_src(places, std::vector<src_input>{{"a"}}).size());
  EXPECT_LT(size / 64000, 2.5);
}

}  // namespace
}  // namespace millrace::formats
