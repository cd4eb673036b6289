// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/document_sources.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/encode_sidecars.hpp"
#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::HasSubstr;

class DocumentSources : public testing::Test {
 protected:
  DocumentSources() {
    test::write_dataset<std::uint16_t>(prefix_, {{{1, 2}}, {}, {{3}}});
    write({{1, 1, 0, 10}, {0, 5, 100, 110}, {0, 6, 111, 120}});
  }

  void write(const std::vector<formats::source_place>& places) const {
    test::write_bytes(src_path_,
                      test::encode_src(places, std::vector<formats::src_input>{{"a"}, {"b"}}));
  }

  std::string fault_of(std::int64_t document) const {
    try {
      (void)document_sources::find(indexed_dataset(prefix_)).value().at(document);
    } catch (const format_error& e) {
      return e.what();
    }
    return "";
  }

  test::temp_folder folder_;
  std::filesystem::path prefix_ = folder_ / "data";
  std::filesystem::path src_path_ = folder_ / "data.src";
};

TEST_F(DocumentSources, GiveThePlaceOfADocument) {
  auto found = document_sources::find(indexed_dataset(prefix_));
  ASSERT_TRUE(found);
  const document_sources sources = std::move(*found);  // the move leaves the mapped data in place
  EXPECT_EQ(sources.at(0), (formats::source_place{1, 1, 0, 10}));
  EXPECT_EQ(sources.at(2), (formats::source_place{0, 6, 111, 120}));
  EXPECT_EQ(sources.input_name(1), "b");
}

TEST_F(DocumentSources, AreNotThereWithoutASrc) {
  std::filesystem::remove(src_path_);
  EXPECT_FALSE(document_sources::find(indexed_dataset(prefix_)));
}

TEST_F(DocumentSources, AreRefusedWithThePathOfTheFile) {
  write({{1, 1, 0, 10}});
  EXPECT_THAT(fault_of(0),
              HasSubstr("data.src: it has the places of 1 documents, but the dataset has 3"));
  write({{1, 1, 0, 10}, {0, 5, 100, 110}, {2, 6, 111, 120}});
  EXPECT_THAT(fault_of(2),
              HasSubstr("data.src: a document comes from an input beyond the 2 that are"));
  EXPECT_EQ(fault_of(0), "");
  std::filesystem::resize_file(src_path_, 47);
  EXPECT_THAT(fault_of(0), HasSubstr("data.src: file ends inside the size of the names"));
}

}  // namespace
}  // namespace millrace::dataset
