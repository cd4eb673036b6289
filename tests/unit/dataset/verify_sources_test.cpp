// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/verify_sources.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/encode_sidecars.hpp"
#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using formats::source_place;
using testing::HasSubstr;

/// 100 documents in two groups of entries. The first 60 documents are from input 0, which was read
/// from byte 500 on. The other 40 are from input 1.
class VerifySources : public testing::Test {
 protected:
  VerifySources() {
    test::write_dataset<std::uint16_t>(prefix_, test::documents_of<std::uint16_t>(100));
    for (std::int64_t i = 0; i < 100; ++i) {
      const auto n = static_cast<std::uint64_t>(i < 60 ? i : i - 60);
      const std::uint64_t begin = (i < 60 ? 500 : 0) + 20 * n;
      const auto line = static_cast<std::int64_t>(n) + 1;
      places_.push_back({i < 60 ? 0U : 1U, line, begin, begin + 19});
    }
  }

  /// @return the message of the fault; empty if there is none
  std::string fault_of(const std::vector<source_place>& places) const {
    test::write_bytes(src_path_, test::encode_src(places, names_));
    return fault();
  }
  std::string fault() const {
    try {
      const auto sources = document_sources::find(indexed_dataset(prefix_)).value();
      verify_sources(sources);
      own_faults_only_ = true;
      verify_sources(sources, extents_);
    } catch (const format_error& e) {
      EXPECT_EQ(e.path(), src_path_);
      return e.what();
    }
    return "";
  }
  /// Returns the message of the fault that is found after `alter` changes the place of one
  /// document.
  template <class Alter>
  std::string fault_with(std::size_t document, Alter&& alter) const {
    auto places = places_;
    alter(places[document]);
    return fault_of(places);
  }

  test::temp_folder folder_;
  std::filesystem::path prefix_ = folder_ / "data";
  std::filesystem::path src_path_ = folder_ / "data.src";
  std::vector<formats::src_input> names_ = {{"a"}, {"b"}};
  std::vector<source_extent> extents_ = {{500, 1700, 60}, {0, 800, 40}};
  std::vector<source_place> places_;
  mutable bool own_faults_only_ = false;
};

TEST_F(VerifySources, AcceptPlacesWithinWhatWasRead) {
  EXPECT_EQ(fault_of(places_), "");
  EXPECT_TRUE(own_faults_only_);
}

TEST_F(VerifySources, NameTheDocumentThatLiesOutside) {
  EXPECT_THAT(fault_with(0, [](auto& place) { place.begin = 499; }),
              HasSubstr("data.src: document 0 is listed at bytes 499 to 519, but the .meta says "
                        "that bytes 500 to 1700 were read"));
  EXPECT_THAT(fault_with(99, [](auto& place) { place.end = 801; }),
              HasSubstr("document 99 is listed at bytes 780 to 801, but"));
  EXPECT_THAT(fault_with(99, [](auto& place) { place.line = 41; }),
              HasSubstr("document 99 is listed at line 41, but the .meta says that 40 lines"));
}

TEST_F(VerifySources, ExpectOneRowOfADocument) {
  names_[1].unit = formats::src_unit::rows;
  EXPECT_THAT(fault_of(places_), HasSubstr("a document has the rows 0 to 19 of its input, expected "
                                           "one row"));
  EXPECT_FALSE(own_faults_only_);  // the .src alone shows it
  for (std::size_t i = 60; i < 100; ++i) {
    places_[i].begin = i - 60;
    places_[i].end = i - 59;
  }
  EXPECT_EQ(fault_of(places_), "");
  EXPECT_THAT(
      fault_with(99, [](auto& place) { place.begin = 900, place.end = 901; }),
      HasSubstr("document 99 is listed at rows 900 to 901, but the .meta says that rows 0 to "
                "800 were read"));
}

TEST_F(VerifySources, NameTheDocumentThatIsOutOfOrder) {
  EXPECT_THAT(fault_with(70,
                         [](auto& place) {
                           place = {0, 11, 700, 719};
                         }),
              HasSubstr("document 70 is listed in input 0, after a document in input 1"));
  EXPECT_THAT(fault_with(30, [](auto& place) { place.line = 30; }),
              HasSubstr("document 30 is listed at line 30, bytes 1100 to 1119, but the document "
                        "before it is at line 30, bytes 1080 to 1099"));
  EXPECT_THAT(fault_with(65, [](auto& place) { place.begin -= 2; }),
              HasSubstr("document 65 is listed at line 6, bytes 98 to 119, but"));
  EXPECT_TRUE(own_faults_only_);  // the .src alone was valid each time
}

// Without a .meta, only the entries themselves must be valid. Nothing says in which order inputs
// were read, because other programs may interleave or shuffle them.
TEST_F(VerifySources, AskOnlyForSoundEntriesWithoutAMeta) {
  std::swap(places_[3], places_[90]);
  EXPECT_THAT(fault_of(places_), HasSubstr("document 4 is listed"));
  EXPECT_NO_THROW(verify_sources(document_sources::find(indexed_dataset(prefix_)).value()));
}

TEST_F(VerifySources, CompareTheNumberOfInputs) {
  names_.push_back({"c"});
  EXPECT_THAT(fault_of(places_),
              HasSubstr("it has the names of 3 inputs, but the .meta has 2 (at byte 32)"));
}

// verify_sources() finds damage in every entry. open() does not, because it reads no entry.
TEST_F(VerifySources, WalkEveryEntry) {
  test::write_bytes(src_path_, test::encode_src(places_, names_));
  const auto whole = test::read_bytes(src_path_);
  const auto directory = whole.size() - 2 * formats::src_group_bytes - 10;  // two one-letter names
  for (std::size_t at = formats::src_header_bytes; at < directory; ++at) {
    auto altered = whole;
    altered[at] |= std::byte{0x80};  // makes a varint continue where it should end
    if (altered == whole) continue;
    test::write_bytes(src_path_, altered);
    EXPECT_NE(fault(), "") << at;
  }
}

}  // namespace
}  // namespace millrace::dataset
